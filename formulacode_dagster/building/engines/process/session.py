"""A session of the process engine: a folder with the content of a built one, discarded when it closes."""

from __future__ import annotations

import math
import os
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.building.engines.processes import Bounds, run_bounded
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.specs import recipes
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.reasons import FailureKind

from .layout import SYSTEM_PATH, Layout, subfolders
from .removal import remove_in_background
from .sharing import NOTHING_SHARED, SharedFiles, share, share_again

_MARK = "FORMULACODE_SESSION"
_OWNER = "owner.json"
REMOVED = "removed"
"""The folder next to the sessions' in which closed sessions are removed."""
YOUNG_SECONDS = 60
"""A folder younger than this may not have got its owner's name yet."""
OLD_SECONDS = 48 * 3600


class ProcessSession:
    """Implements `engine.Session` in the folder of *layout*."""

    def __init__(
        self,
        layout: Layout,
        *,
        limits: ResourceLimits,
        isolate_network: bool,
        confined: bool,
        uv: str,
        compiler: str | None = None,
        bytecode: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """*compiler* made the environment; *bytecode* adds compiled modules for builds, and removes them afterwards."""
        self._layout = layout
        self.shared = NOTHING_SHARED
        self.compiler = compiler
        self.image: str | None = None
        self._bytecode = bytecode
        self._bounds = Bounds(limits, isolate_network=isolate_network)
        self._confined = confined
        self._cores = math.ceil(limits.cpus)
        self._uv = uv
        self._put: dict[Path, bytes] = {}
        self.python = str(layout.python)
        self.repository = str(layout.repository)
        self.harness = str(layout.folder / "harness")
        self.tests = str(layout.tests)

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self._layout.folder

    def open(self, image: Layout) -> None:
        """Fill the folder with the content of *image*; raises as `share`."""
        self._fill(share(image, self._layout.folder, confined=self._confined))

    def open_like(self, other: ProcessSession) -> None:
        """Fill the folder with the current content of the open session *other*; raises as `share_again`."""
        self._fill(share_again(other._layout, other.shared, self._layout.folder))

    def _fill(self, shared: SharedFiles) -> None:
        self.shared = shared
        self._layout.make()
        if self._confined:
            self._confine(shared.protected_inodes)
        self.shared = shared.begun_in(self._layout.folder)
        Path(self.harness).mkdir(mode=0o555)

    def _confine(self, protected: Collection[int]) -> None:
        """Give the folder to the user of untrusted code, before any of it runs and could lead us elsewhere, but not the
        *protected* inodes.
        """
        self._layout.hand_over(protected)
        self._bounds = replace(self._bounds, view=self._layout.view(self._uv, self._layout.python))

    def put(self, name: str, content: bytes, *, executable: bool = False) -> str:
        """Place a file in the harness folder. If code is not confined and could change it, `run` notices."""
        path = Path(self.harness) / name
        if path.parent != Path(self.harness):
            raise ValueError(f"{name!r} is not a plain file name")
        self._put[path] = content
        self._write(path, content, 0o555 if executable else 0o444)
        return str(path)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> Completed:
        """Run a command, outside the checkout unless *cwd* is given, so that sources do not shadow the built package.

        Raises ItemFailure (`harness_changed`) when it altered a file of the harness.
        """
        done = run_bounded(
            argv,
            timeout=timeout,
            bounds=self._bounds,
            environment=self._environment(environment or {}),
            cwd=Path(cwd) if cwd else self._layout.folder / "home",
            stdin=stdin,
        )
        self._check_harness()
        return done

    def reinstall(self, *, timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        """Reinstall the package from the current checkout, offline."""
        with self._bytecode():
            return run_bounded(
                ["bash", str(recipes.script("install-package"))],
                timeout=timeout,
                bounds=self._bounds,
                environment={
                    **self._layout.environment(self._uv, self.python),
                    **(environment or {}),
                    _MARK: str(self._layout.folder),
                },
                cwd=self._layout.folder,
            )

    def close(self) -> list[str]:
        """Kill all remaining processes, and remove the folder; return files of the image that were written in place."""
        mark = f"{_MARK}={self._layout.folder}".encode()
        for pid in _processes_with(mark):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        written = self.shared.written_in(self._layout.folder)
        remove_in_background(self._layout.folder, self._layout.folder.parent.with_name(REMOVED))
        return written

    def _environment(self, wanted: Mapping[str, str]) -> dict[str, str]:
        folder = self._layout.folder
        environment = {
            "PATH": f"{self._layout.venv}/bin:{SYSTEM_PATH}",
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "PYTHON_CPU_COUNT": str(min(self._cores, len(os.sched_getaffinity(0)))),
            "VIRTUAL_ENV": str(self._layout.venv),
            **wanted,
            _MARK: str(folder),
        }
        # First on the path, so that no package of the image can replace the harness.
        others = [wanted["PYTHONPATH"]] if wanted.get("PYTHONPATH") else []
        environment["PYTHONPATH"] = os.pathsep.join([str(self._layout.instrument), *others])
        return environment

    def _write(self, path: Path, content: bytes, mode: int) -> None:
        folder = path.parent
        folder.chmod(0o755)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        folder.chmod(0o555)

    def _check_harness(self) -> None:
        for path, content in self._put.items():
            if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
                raise ItemFailure(
                    FailureKind.HARNESS_CHANGED,
                    f"the code under measurement changed {path.name} of the harness",
                    remedy="Check its code; none of its output can be trusted",
                )


def new_session_folder(sessions: Path, *, run_id: str) -> Path:
    """Make an empty folder that says whose it is."""
    sessions.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="session-", dir=sessions)).resolve()
    (folder / _OWNER).write_text(Owner.current(run_id).model_dump_json())
    return folder


def abandoned_sessions(sessions: Path) -> Iterator[ProcessSession]:
    """Sessions whose process is gone, or that are older than any session gets; the closed ones among them."""
    for folder in (*subfolders(sessions), *subfolders(sessions.with_name(REMOVED))):
        try:
            age = time.time() - folder.stat().st_mtime
        except FileNotFoundError:
            continue
        try:
            owner = Owner.parse((folder / _OWNER).read_bytes())
        except FileNotFoundError:
            owner = None
        if (owner.is_dead() or age > OLD_SECONDS) if owner else age > YOUNG_SECONDS:
            yield ProcessSession(Layout(folder), limits=ResourceLimits(), isolate_network=False, confined=False, uv="")


def _processes_with(mark: bytes) -> list[int]:
    processes = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    processes.append(int(folder.name))
    return processes
