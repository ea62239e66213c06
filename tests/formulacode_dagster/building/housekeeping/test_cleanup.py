from __future__ import annotations

import os
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from filelock import FileLock

from formulacode_dagster.building.engines.installation import installation_id
from formulacode_dagster.building.engines.process.image_store import ProcessImageStore
from formulacode_dagster.building.engines.process.layout import BuildManifest
from formulacode_dagster.building.housekeeping.cleanup import Budgets, CleanupReport, clean_up, clean_up_all
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.image import ImageNeed, Toolchain
from formulacode_dagster.operating.store.database import Database

NOW = datetime.now(tz=UTC) + timedelta(days=3)


@pytest.fixture(autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests ignore leftovers of other processes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("scratch")))


def folder_of(root: Path, name: str, size: int = 1000, *, age: float = 0) -> Path:
    """A finished folder of the process engine, *age* seconds older than now."""
    folder = root / "images" / name
    folder.mkdir(parents=True)
    manifest = BuildManifest(
        tag=f"formulacode/{name}",
        digest=f"sha256:{name}",
        size_bytes=size,
        seconds=1.0,
        tiers=(),
        toolchain=Toolchain(),
    )
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    moment = time.time() - age
    os.utime(folder / "manifest.json", (moment, moment))
    return folder


def needed(name: str) -> dict[str, ImageNeed]:
    digest = f"sha256:{name}"
    return {digest: ImageNeed(item="a/b#1", month="2026-01", digest=digest, last=NOW, unfinished=True, only_copy=False)}


def test_folders_over_the_budget_go_and_those_a_month_needs_stay(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path, name, age=age) for name, age in (("a", 30), ("b", 20), ("c", 10))]
    room = ProcessImageStore(tmp_path)
    foreseen = clean_up(room, needed("a"), Budgets(1500, None), now=NOW, dry_run=True)
    assert [folder.exists() for folder in folders] == [True, True, True]
    done = clean_up(room, needed("a"), Budgets(1500, None), now=NOW, dry_run=False)
    assert [folder.exists() for folder in folders] == [True, False, False]
    assert [removal.image.digest for removal in done.removed] == [removal.image.digest for removal in foreseen.removed]
    assert (done.freed, done.image_bytes, done.needed_bytes, done.over(Budgets(500, None))) == (2000, 1000, 1000, 500)
    assert "removed: leftovers of dead processes 0, images 2; kept: images 1, 0.00 GB" in done.summary


def test_shared_environments_over_budget_go_least_used_first(tmp_path: Path) -> None:
    tiers = []
    for name, age in (("newer", 10), ("older", 30)):
        venv = tmp_path / "tiers" / name / "venv"
        venv.mkdir(parents=True)
        (venv / "file").write_bytes(b"x" * 8192)
        os.utime(venv.parent, (time.time() - age, time.time() - age))
        tiers.append(venv.parent)
    room = ProcessImageStore(tmp_path)
    foreseen = clean_up(room, {}, Budgets(None, 8192), now=NOW, dry_run=True)
    assert [tier.exists() for tier in tiers] == [True, True]
    done = clean_up(room, {}, Budgets(None, 8192), now=NOW, dry_run=False)
    assert [tier.exists() for tier in tiers] == [True, False]
    assert done.cache == foreseen.cache
    assert (done.cache.records, done.freed, done.cache.bytes_after) == (1, 8192, 8192)
    assert clean_up(room, {}, Budgets(None, None), now=NOW, dry_run=False).cache.records == 0


def test_a_folder_that_is_built_or_copied_just_now_stays(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "busy")
    (tmp_path / "locks").mkdir()
    with FileLock(tmp_path / "locks" / "busy"):
        done = clean_up(ProcessImageStore(tmp_path), {}, Budgets(1, None), now=NOW, dry_run=False)
    assert folder.exists()
    assert done.in_use == ("busy",)


def test_a_folder_that_was_built_anew_since_it_was_looked_at_stays(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "again")
    room = ProcessImageStore(tmp_path)
    (before,) = room.inventory().images
    shutil.rmtree(folder)
    (folder_of(tmp_path, "again") / "manifest.json").write_text("unfinished")
    assert not room.discard(before)
    assert folder.exists()


def test_half_built_folders_and_sessions_of_dead_processes_go_first(tmp_path: Path) -> None:
    (tmp_path / "building" / "half").mkdir(parents=True)
    room = ProcessImageStore(tmp_path)
    unlimited = Budgets(None, None)
    assert clean_up(room, {}, unlimited, now=NOW, dry_run=True).leftovers == ("half",)
    assert (tmp_path / "building" / "half").exists()
    done = clean_up(room, {}, unlimited, now=NOW, dry_run=False)
    assert list(done.gone()) == [("half", "left by a dead process", 0)]
    assert not (tmp_path / "building" / "half").exists()


def test_where_nothing_was_ever_built_there_is_nothing_to_do(tmp_path: Path, database: Database) -> None:
    (done,) = clean_up_all(database, [ProcessImageStore(tmp_path / "none")], Budgets(0, 0), dry_run=False)
    assert isinstance(done, CleanupReport)
    assert (done.removed, done.images_kept, done.freed) == ((), 0, 0)


def test_an_installation_keeps_the_name_it_was_given(tmp_path: Path) -> None:
    first = installation_id(tmp_path / "home")
    assert first == installation_id(tmp_path / "home")
    assert first != installation_id(tmp_path / "other")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="set FC_HOME"):
        installation_id(tmp_path / "file" / "below")
