"""Free space of a disk during a build."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from formulacode_dagster.building.engines import free_space
from formulacode_dagster.building.engines.free_space import SpaceWatch, is_full

ROOM = {"f_bavail": 1 << 30, "f_frsize": 4096, "f_files": 1 << 20, "f_favail": 1 << 19}


@pytest.mark.parametrize(
    ("facts", "full"),
    [({}, False), ({"f_bavail": 1000}, True), ({"f_favail": 3}, True), ({"f_files": 0, "f_favail": 0}, False)],
    ids=["room", "no bytes", "no files", "no limit of files"],
)
def test_a_disk_is_full_without_bytes_or_without_files(
    facts: dict[str, int], full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**ROOM | facts))
    assert is_full(Path("/")) is full


def test_a_disk_that_is_full_only_for_a_moment_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, full = threading.Event(), True

    def look(_: Path) -> SimpleNamespace:
        seen.set()
        return SimpleNamespace(**ROOM | ({"f_bavail": 0} if full else {}))

    monkeypatch.setattr(os, "statvfs", look)
    monkeypatch.setattr(free_space, "POLL_SECONDS", 0.01)
    with SpaceWatch(Path("/"), None) as watch:
        assert seen.wait(10)
        full = False
    assert watch.was_full


def test_a_folder_that_is_not_here_is_not_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_space, "FULL_BYTES", 1 << 60)
    with SpaceWatch(None, tmp_path / "gone") as watch:
        pass
    assert not watch.was_full
