from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from formulacode_dagster.engines import folders
from formulacode_dagster.engines.folders import ATTEMPTS, remove_tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "session" / "tmp"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    return inner.parent


@pytest.mark.parametrize("misses", range(ATTEMPTS + 1))
def test_a_file_that_an_ending_process_takes_away_meanwhile_is_none_to_miss(
    monkeypatch: pytest.MonkeyPatch, folder: Path, misses: int
) -> None:
    left = [FileNotFoundError(2, "gone meanwhile", "tmp/file")] * misses

    def rmtree(path: Path) -> None:
        if left:
            raise left.pop()
        shutil.rmtree(path)

    monkeypatch.setattr(folders, "shutil", type("Shutil", (), {"rmtree": staticmethod(rmtree)}))
    remove_tree(folder)
    assert not folder.exists()


def test_what_never_goes_is_told(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def rmtree(_path: Path) -> None:
        raise FileNotFoundError(2, "gone again", "tmp/file")

    monkeypatch.setattr(folders, "shutil", type("Shutil", (), {"rmtree": staticmethod(rmtree)}))
    with pytest.raises(FileNotFoundError, match="gone again"):
        remove_tree(folder)
