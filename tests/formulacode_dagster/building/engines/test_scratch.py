from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.image_store import ProcessImageStore
from formulacode_dagster.building.engines.scratch import abandoned_scratch, scratch_folder

PROGRAM = """
import time
from formulacode_dagster.building.engines.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "history.bundle").write_text("large")
    print(folder, flush=True)
    time.sleep(60)
"""


def test_a_scratch_folder_is_gone_afterwards_and_only_ours_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder() as first, scratch_folder() as second:
        assert first.name != second.name
        assert first.parent.stat().st_mode & 0o777 == 0o700
        assert abandoned_scratch() == ()
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_processes_go_and_those_of_living_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "formulacode-scratch-nobodys").mkdir()
    killed = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, env={"TMPDIR": str(tmp_path)})
    assert killed.stdout is not None
    left = Path(killed.stdout.readline().decode().strip())
    room = ProcessImageStore(tmp_path / "builds")
    with scratch_folder() as living:
        assert room.leftovers(remove=True) == ()
        killed.kill()
        killed.wait()
        killed.stdout.close()
        assert room.leftovers(remove=True) == (str(left.parent),)
        assert not left.exists()
        assert living.exists()
    assert (tmp_path / "formulacode-scratch-nobodys").exists(), "nobody says whose it is"
