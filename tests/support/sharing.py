"""What one run of the tests makes once, whichever of its processes asks first, and all of them use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock


@dataclass(frozen=True)
class RunFolder:
    """The folder of this run, which no other run sees; `uid` names what the run makes outside of it."""

    path: Path
    uid: str

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """The path *name* in this folder; `make(path)` fills it for whichever process of the run asks first."""
        made = self.path / name
        with self.lock(name):
            ready = self.path / f"{name}.ready"
            if not ready.exists():
                make(made)
                ready.touch()
        return made

    def lock(self, name: str) -> FileLock:
        """A lock among the processes of this run."""
        return FileLock(self.path / f"{name}.lock")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str, worker_id: str) -> RunFolder:
    """What the processes of this run share; a process that runs all tests alone shares with itself."""
    own = tmp_path_factory.getbasetemp()
    return RunFolder(own if worker_id == "master" else own.parent, testrun_uid[:12])
