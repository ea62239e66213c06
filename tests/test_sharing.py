"""Resources that the processes of a run make once, and their removal."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from tests.support.sharing import RunFolder


@pytest.mark.slow
def test_what_is_shared_is_made_once_and_removed_by_the_last_that_uses_it(tmp_path):
    folder, done = RunFolder(tmp_path, "run"), []

    def shared():
        return folder.shared("image", lambda made: done.append(made.name), lambda: done.append("removed"))

    beside = multiprocessing.get_context("spawn").Process(target=use, args=(tmp_path, tmp_path / "ends"))
    beside.start()
    while not (tmp_path / "began").exists():
        assert beside.is_alive()
    with shared() as made:
        assert made == tmp_path / "image"
        assert made.read_text() == "made by another"
    assert done == []
    (tmp_path / "ends").touch()
    beside.join()
    assert (tmp_path / "removed").exists()
    # whoever comes later removes what it may have brought back
    with shared():
        pass
    assert done == ["removed"]


def test_a_process_that_shares_twice_removes_at_the_end_of_both(tmp_path):
    folder, done = RunFolder(tmp_path, "run"), []

    def shared():
        return folder.shared("image", Path.touch, lambda: done.append("removed"))

    with shared():
        with shared():
            pass
        assert done == []
    assert done == ["removed"]


def use(path, ends):
    with RunFolder(path, "run").shared(
        "image", lambda made: made.write_text("made by another"), (path / "removed").touch
    ):
        (path / "began").touch()
        while not ends.exists():
            pass
