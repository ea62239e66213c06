"""Places in which the image's code runs: the shared root file system, and each its own copy of what may be written."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, TYPE_CHECKING, NamedTuple

from .contents import ArchiveRefusedError
from .entering import Bind, PlacedCommand, Way, session_user
from .layers import RootFileSystem, remove_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = "/home/formulacode"
REPOSITORY = "/workspace/repo"
TOOLS = "/opt/formulacode"
HARNESS = f"{TOOLS}/harness"
PYTHON = "/opt/venv/bin/python"
TAIL_CHARACTERS = 4000
KEPT_BYTES = 64 * 1024**2
GRACE_SECONDS = 10.0


class EndedCommand(NamedTuple):
    """How a command ended."""

    rc: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool

    @property
    def ok(self) -> bool:
        """True if it ended by itself with status 0."""
        return self.rc == 0 and not self.timed_out

    def describe(self) -> str:
        """The ending, and the end of its standard error."""
        ending = f"timed out after {self.seconds:.0f} s" if self.timed_out else f"ended with status {self.rc}"
        return f"{ending}\n{self.stderr[-TAIL_CHARACTERS:].decode(errors='replace')}".strip()


class SessionMachine(NamedTuple):
    """How commands run here: the root file system, its variables, the way into it, our tools and limits."""

    root: RootFileSystem
    variables: dict[str, str]
    way: Way
    tools: str
    """Folder with the scripts of `namespaces`, `passwd` and `harness/`."""
    limits: dict[str, int]
    binds: tuple[Bind, ...] = ()
    """Folders of this machine that stand for those of the image, of a slim archive."""


class SessionPlace:
    """One session. Its folder is removed when it closes."""

    binds: list[Bind]
    """What it has besides the root file system."""

    def __init__(self, machine: SessionMachine, folder: str, like: SessionPlace | None = None) -> None:
        """Fill *folder* with copies of what the image's user may write to, or of what the place *like* has there."""
        self._machine, self.folder = machine, folder
        sources = (
            {bind.inside: bind.source for bind in like.binds if bind.writable}
            if like
            else {inside: machine.root.folder + inside for inside in machine.root.writable}
        )
        os.makedirs(folder)
        self.binds = [
            *machine.binds,
            Bind(f"{machine.tools}/passwd", "/etc/passwd", writable=False),
            Bind(f"{machine.tools}/harness", HARNESS, writable=False),
        ]
        for number, inside in enumerate(sorted({*sources, "/tmp", "/var/tmp"})):
            copy = os.path.join(folder, str(number))
            if inside in sources:
                subprocess.run(["cp", "-a", "--reflink=auto", sources[inside], copy], check=True)
            else:
                os.makedirs(copy)
            self.binds.append(Bind(copy, inside, writable=True))
        if machine.way.is_by_user and not os.getuid():
            subprocess.run(["chown", "-Rh", ":".join(map(str, session_user())), folder], check=True)

    def run(
        self,
        argv: list[str],
        *,
        timeout: float,
        cwd: str = HOME,
        environment: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> EndedCommand:
        """Run a command; when it ends, or its time does, nothing that it started is left."""
        machine = self._machine
        cores = str(os.cpu_count() or 1)
        variables = {**machine.variables, "HOME": HOME, "FC_CORES": cores, "PYTHON_CPU_COUNT": cores}
        variables.update(environment or {})
        command = PlacedCommand(argv, cwd, variables, timeout, machine.root.folder, self.binds, machine.limits)
        reading, writing = os.pipe()
        started = time.monotonic()
        try:
            program, *arguments = machine.way.start(command, machine.tools, reading)
            process = subprocess.Popen(
                [shutil.which(program) or program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=variables if machine.way.hands_on else None,
                start_new_session=True,
                pass_fds=() if machine.way.program else (reading,),
            )
            streams = [_PipeReader(process.stdout), _PipeReader(process.stderr)]
            feeder = threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True)
            feeder.start()
            timed_out = False
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
        finally:
            os.close(writing)
            os.close(reading)
        if timed_out:
            _end(process, by_signal=bool(machine.way.program))
        for thread in (*streams, feeder):
            thread.join(GRACE_SECONDS)
        out, errors = (bytes(stream.kept) for stream in streams)
        return EndedCommand(process.returncode, out, errors, time.monotonic() - started, timed_out)

    def reinstall(self, *, timeout: float, environment: Mapping[str, str] | None = None) -> EndedCommand:
        """Build the package from the checkout and install it, by the script that built the image."""
        return self.run([f"{TOOLS}/bin/install-package"], timeout=timeout, environment=environment)

    def close(self) -> None:
        """Remove its folder."""
        remove_tree(self.folder)


def enter(wanted: SessionMachine, ways: list[Way]) -> tuple[SessionMachine, list[str]]:
    """Return the machine *wanted* with the first of *ways* that runs its interpreter, and why those before it do not.

    Raises ArchiveRefusedError if none does.
    """
    reasons = []
    for way in ways:
        machine = wanted._replace(way=way)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(wanted.tools), ignore_cleanup_errors=True) as folder:
            place = SessionPlace(machine, os.path.join(folder, "probe"))
            try:
                done = place.run([PYTHON, "-c", "print('entered')"], timeout=60)
            except OSError as error:
                reasons.append(f"{way.name}: {error}")
                continue
            finally:
                place.close()
        if done.ok and done.stdout.strip() == b"entered":
            return machine, reasons
        reasons.append(f"{way.name}: {' '.join(done.describe().split())[:300]}")
    raise ArchiveRefusedError(
        "no way into the root file system works here: "
        + ("; ".join(reasons) or "none is installed")
        + ". Allow user namespaces (sysctl user.max_user_namespaces), or install bubblewrap, podman or Apptainer"
    )


class _PipeReader(threading.Thread):
    """Reads a pipe to its end."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self.kept = bytearray()
        self.start()

    def run(self) -> None:
        """Keep the first bytes."""
        if self._pipe is not None:
            with self._pipe:
                while chunk := os.read(self._pipe.fileno(), 1 << 16):
                    self.kept += chunk[: KEPT_BYTES - len(self.kept)]


def _feed(pipe: IO[bytes] | None, content: bytes) -> None:
    if pipe is not None:
        with contextlib.suppress(BrokenPipeError), pipe:
            pipe.write(content)


def _end(process: subprocess.Popen[bytes], *, by_signal: bool) -> None:
    """Wait for a command whose pipe was closed, or kill it with its group."""
    try:
        process.wait(0 if by_signal else GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
