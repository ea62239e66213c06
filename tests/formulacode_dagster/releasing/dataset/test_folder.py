from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.checks import released_tags_untouched
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.index import DatasetIndex
from tests.support.release import tables_of

MakeRecord = Callable[..., TaskRecord]
FEBRUARY, JANUARY = Month.parse("2026-02"), Month.parse("2026-01")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_a_month_is_written_tagged_and_read_back(folder: Path, record: MakeRecord) -> None:
    destination = FolderDestination(folder)
    found = destination.release(FEBRUARY, tables_of([record(1), record(2)]))
    assert found.tag == "formulacode@2026-03"
    assert found.destination == destination.name == str(folder)
    assert found.task_ids == ("acme__fast-1", "acme__fast-2")
    assert found.read_back_sha256 == found.rows_sha256
    assert destination.tags() == {"formulacode@2026-03": found.revision}
    assert {"data/2026-02.parquet", "verified/2026-02.parquet", "README.md", "months.json"} <= set(_files(folder))


def test_the_same_month_again_changes_nothing(folder: Path, record: MakeRecord) -> None:
    destination = FolderDestination(folder)
    first = destination.release(FEBRUARY, tables_of([record(1), record(2)]))
    destination.release(JANUARY, tables_of([]))
    before = _files(folder)
    assert destination.release(FEBRUARY, tables_of([record(2), record(1)])) == first
    assert _files(folder) == before


def test_a_released_month_is_never_changed(folder: Path, record: MakeRecord) -> None:
    destination = FolderDestination(folder)
    destination.release(FEBRUARY, tables_of([record(1)]))
    before = _files(folder)
    with pytest.raises(ItemFailure, match="a released tag is never changed") as caught:
        destination.release(FEBRUARY, tables_of([record(1, speedup=9.0)]))
    assert caught.value.kind == "released_tag"
    assert "acme__fast-1 (speedup)" in str(caught.value)
    assert _files(folder) == before


def test_the_card_covers_every_month(folder: Path, record: MakeRecord) -> None:
    destination = FolderDestination(folder)
    destination.release(FEBRUARY, tables_of([record(1)]))
    destination.release(JANUARY, tables_of([]))
    index = DatasetIndex.parse((folder / "months.json").read_bytes(), "here")
    assert [(month.month, month.tasks) for month in index.months] == [("2026-01", 0), ("2026-02", 1)]


def test_a_changed_release_shows_in_its_tag(folder: Path, record: MakeRecord) -> None:
    destination = FolderDestination(folder)
    found = destination.release(FEBRUARY, tables_of([record(1)]))
    (folder / "releases" / found.tag / "README.md").write_text("something else")
    assert not released_tags_untouched([found], destination.tags()).passed


@pytest.mark.slow
def test_a_run_killed_while_writing_leaves_no_release(folder: Path, record: MakeRecord) -> None:
    killed = """
        import os, sys
        from pathlib import Path
        from formulacode_dagster.models.month import Month
        from formulacode_dagster.releasing.dataset import folder
        from tests.support.release import tables_of

        writing = folder.write_atomically
        def dies(path, content):
            writing(path, content)
            if path.name == sys.argv[2]:
                os._exit(9)
        folder.write_atomically = dies
        folder.FolderDestination(Path(sys.argv[1])).release(Month.parse("2026-02"), tables_of([]))
    """
    for last in ("months.json", "manifest.json"):
        ended = subprocess.run([sys.executable, "-c", textwrap.dedent(killed), str(folder), last], check=False)
        assert ended.returncode == 9
        assert FolderDestination(folder).tags() == {}
    assert list((folder / "releases").glob(".partial-*"))
    found = FolderDestination(folder).release(FEBRUARY, tables_of([record(1)]))
    assert FolderDestination(folder).tags() == {found.tag: found.revision}
    assert not list((folder / "releases").glob(".partial-*"))


def test_a_run_killed_after_its_release_is_finished_by_the_next_one(folder: Path, record: MakeRecord) -> None:
    destination = FolderDestination(folder)
    first = destination.release(FEBRUARY, tables_of([record(1)]))
    for path in ("README.md", "months.json", "data/2026-02.parquet"):
        (folder / path).unlink()
    assert destination.release(FEBRUARY, tables_of([record(1)])) == first
    assert (folder / "README.md").exists()
    assert (folder / "data/2026-02.parquet").exists()


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond two kilobytes; not around a whole test, since pytest's own log may be a file too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_says_so_and_keeps_nothing_half_written(folder: Path, record: MakeRecord) -> None:
    frame = tables_of([record(1, patch=os.urandom(50_000).hex())])
    with pytest.raises(OutsideSystemError, match="Free some space") as caught, full_disk():
        FolderDestination(folder).release(FEBRUARY, frame)
    assert caught.value.system == "disk"
    assert _files(folder) == {}
    assert FolderDestination(folder).tags() == {}


def test_a_damaged_index_stops_before_anything_is_written(folder: Path, record: MakeRecord) -> None:
    destination = FolderDestination(folder)
    destination.release(FEBRUARY, tables_of([record(1)]))
    (folder / "months.json").write_text("{")
    with pytest.raises(ItemFailure, match=r"months\.json is malformed"):
        destination.release(JANUARY, tables_of([]))
    assert set(destination.tags()) == {"formulacode@2026-03"}
