"""Files of an offline source in any format, and small bare mirrors."""

from __future__ import annotations

import asyncio
import csv
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.models.intake import IntakeSource, MergedWindow
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.sources.offline.completion import MirrorCompletion
from formulacode_dagster.sources.offline.detect import detect
from tests.support.git_world import GITHUB, BareRepository
from tests.support.intake import windows_of

SHA = "a" * 40
FEBRUARY = Month.parse("2026-02")

Table = Sequence[Mapping[str, Any]]
Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a connection fails the test."""

    def refuse(*arguments: object) -> None:
        raise AssertionError(f"a connection was opened: {arguments[1:]}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


class NoCompletion(MirrorCompletion):
    """Completes nothing."""

    def __init__(self) -> None:
        """Has no mirrors."""

    def complete(self, repository: Repository, rows: Sequence[Any]) -> list[Any]:
        return list(rows)


def pull_request(number: int = 1, **other: Any) -> dict[str, Any]:
    """A row that nothing is wrong with."""
    given = {
        "repository": "ada/engine",
        "number": number,
        "title": f"Make {number} fast",
        "merged_at": "2026-02-03T04:05:06Z",
        "merge_commit_sha": SHA,
        "head_sha": SHA,
    }
    return given | other


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("csv", repositories=[…], pull_requests=[…])`: the folder; a table that is None is not written."""

    def make(ending: str = "jsonl", **tables: Table | None) -> Path:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        given: dict[str, Table | None] = {"repositories": [{"full_name": "ada/engine"}], **tables}
        for name, rows in given.items():
            if rows is not None:
                WRITERS[ending](folder / f"{name}.{ending}", list(rows))
        return folder

    return make


def _jsonl(path: Path, rows: Table) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _csv(path: Path, rows: Table) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        for row in rows:
            writer.writerow({key: json.dumps(cell) if isinstance(cell, list) else cell for key, cell in row.items()})


def _parquet(path: Path, rows: Table) -> None:
    import polars as pl

    pl.DataFrame(list(rows), infer_schema_length=None).write_parquet(path)


WRITERS = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet}


def opened(source: Path | str, completion: MirrorCompletion | None = None) -> IntakeSource:
    return detect(str(source)).open(completion or NoCompletion())


def found(source: Path | str, month: Month = FEBRUARY, wanted: tuple[str, ...] = ()) -> tuple[Repository, ...]:
    """Result of discovery."""

    async def ask() -> tuple[Repository, ...]:
        async with opened(source) as intake:
            return await intake.discover(month, wanted)

    return asyncio.run(ask())


def windows(
    source: Path | str, month: Month = FEBRUARY, completion: MirrorCompletion | None = None
) -> dict[str, MergedWindow]:
    """The window of every repository, by name."""

    async def ask() -> dict[str, MergedWindow]:
        async with opened(source, completion) as intake:
            rows = await intake.discover(month)
            taken = await windows_of(intake, month, rows)
            assert intake.usage() == ()
            return {row.full_name: window for row, window in zip(rows, taken, strict=True)}

    return asyncio.run(ask())


def window_of(source: Path | str, repository: Repository, month: Month = FEBRUARY) -> MergedWindow:
    async def ask() -> MergedWindow:
        async with opened(source) as intake:
            (window,) = await windows_of(intake, month, [repository])
            return window

    return asyncio.run(ask())


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    folder = tmp_path / "mirrors"
    folder.mkdir()
    return folder


def engine(folder: Path, name: str = "ada/engine", config: str = "benchmarks/asv.conf.json") -> dict[int, str]:
    """A mirror with a merge (#1, January), a merge (#2), a squash whose branch is kept (#3) and one without (#4)."""
    made = BareRepository(folder / f"{name}.git")
    root = made.commit("Begin", "2026-01-01T00:00:00", files={config: "{}"})
    first = made.commit("One", "2026-01-02T00:00:00", root)
    merged = made.commit("Merge pull request #1 from bob/one\n\nFirst", "2026-01-31T23:59:59", root, first)
    second = made.commit("Two", "2026-01-20T00:00:00", merged)
    third = made.commit("Two and a half", "2026-01-21T00:00:00", second)
    again = made.commit("Merge pull request #2 from bob/two\n\nSecond\n\nText", "2026-02-01T00:00:00", merged, third)
    branch = made.commit("Three", "2026-02-02T00:00:00", again)
    squash = made.commit("Third (#3)", "2026-02-03T00:00:00", again, committer=GITHUB)
    last = made.commit("Fourth (#4)", "2026-02-28T23:59:59", squash, committer=GITHUB)
    march = made.commit("Fifth (#5)", "2026-03-01T00:00:00", last, committer=GITHUB)
    made.ref("refs/pull/3/head", branch)
    return made.write(march)
