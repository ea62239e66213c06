"""Resources made once per run of the tests, by the first process that needs them, and used by all."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    @contextmanager
    def shared(self, name: str, make: Callable[[Path], object], remove: Callable[[], object]) -> Iterator[Path]:
        """`once(name, make)` for the length of the block.

        `remove()` takes away what it made outside of this folder, as soon as no process is in such a block: one that
        enters later finds no more of it than the folder.
        """
        users = self.path / f"{name}.users"
        own = users / uuid.uuid4().hex
        with self.lock(f"{name}.users"):
            users.mkdir(exist_ok=True)
            own.touch()
        try:
            yield self.once(name, make)
        finally:
            with self.lock(f"{name}.users"):
                own.unlink()
                if not any(users.iterdir()):
                    remove()

    def lock(self, name: str) -> FileLock:
        """A lock among the processes of this run."""
        return FileLock(self.path / f"{name}.lock")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str, worker_id: str) -> RunFolder:
    """Resources that the processes of this run share; a single process shares with itself."""
    own = tmp_path_factory.getbasetemp()
    return RunFolder(own if worker_id == "master" else own.parent, testrun_uid[:12])
