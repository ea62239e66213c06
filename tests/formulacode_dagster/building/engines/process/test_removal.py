from __future__ import annotations

import threading
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process import removal
from formulacode_dagster.building.engines.process.removal import MOST_WAITING, finish_removals, remove_in_background
from formulacode_dagster.building.engines.process.session import abandoned_sessions, new_session_folder


def folder_of(root: Path, name: str) -> Path:
    folder = root / "sessions" / name
    (folder / "locked").mkdir(parents=True)
    (folder / "locked" / "file").write_text("x")
    (folder / "locked").chmod(0o500)
    folder.chmod(0o500)
    return folder


def test_a_folder_is_out_of_the_way_at_once_and_removed_beside_the_work(tmp_path: Path) -> None:
    hold = threading.Event()
    removal._remover.submit(hold.wait, 30)
    folder, removed = folder_of(tmp_path, "one"), tmp_path / "removed"
    remove_in_background(folder, removed)
    assert not folder.exists()
    assert (removed / "one" / "locked" / "file").exists(), "nobody waited for it"
    hold.set()
    finish_removals()
    assert list(removed.iterdir()) == []
    remove_in_background(folder, removed)  # what is gone is gone


def test_whoever_comes_when_too_many_wait_removes_the_folder_itself(tmp_path: Path) -> None:
    hold, removed = threading.Event(), tmp_path / "removed"
    removal._remover.submit(hold.wait, 30)
    for number in range(MOST_WAITING + 1):
        remove_in_background(folder_of(tmp_path, f"{number}"), removed)
    assert sorted(path.name for path in removed.iterdir()) == [f"{number}" for number in range(MOST_WAITING)]
    hold.set()
    finish_removals()
    assert list(removed.iterdir()) == []
    assert removal._places._value == MOST_WAITING


def test_a_folder_that_cannot_be_removed_is_told_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = new_session_folder(tmp_path / "sessions", run_id="run")
    owner = folder / "owner.json"
    owner.write_text(owner.read_text().replace('"pid":', '"pid":9999'))

    def broken(folder: Path) -> None:
        raise PermissionError(13, "immutable", str(folder))

    with monkeypatch.context() as patched:
        patched.setattr(removal, "remove_tree", broken)
        remove_in_background(folder, tmp_path / "removed")
        finish_removals()
    assert "could not be removed" in caplog.text
    assert removal._places._value == MOST_WAITING
    (session,) = abandoned_sessions(tmp_path / "sessions")
    session.close()
    finish_removals()
    assert list((tmp_path / "removed").iterdir()) == []
