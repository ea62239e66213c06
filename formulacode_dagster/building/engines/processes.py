"""Runs a command of the host with a time limit, and reads its output as it comes."""

from __future__ import annotations

import ctypes
import errno
import marshal
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import IO

from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.operating.cancellation.stopping import stop_request

from . import confine
from .protocol import Completed
from .view import CommandView

KEPT_BYTES = 32 * 1024 * 1024
"""Bytes kept of each stream of a command, so that no benchmark can fill the host's memory."""

GRACE_SECONDS = 10.0
FILE_BYTES = 8 * 1024**3
_LEAVE = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare({confine.CLONE_NEWUSER}) != 0)"


@dataclass(frozen=True)
class Bounds:
    """Limits of a command, see `confine`; without *limits* only its lifetime is limited.

    A limited command is untrusted code: it runs *apart*, and cannot inspect processes outside, which hold tokens; if it
    must run as the same user, it cannot inspect this one. With a *view* it has no other files, processes and sockets.
    """

    limits: ResourceLimits | None = None
    isolate_network: bool = False
    nice: int = 0
    apart: bool = False
    view: CommandView | None = None

    @property
    def is_apart(self) -> bool:
        """True if untrusted code runs under these limits."""
        return self.apart or self.limits is not None

    def describe(self, timeout: float, *, home: str) -> dict[str, object]:
        """The bounds as `confine` reads them; *home* is the command's home folder."""
        usable = len(os.sched_getaffinity(0))
        cores = min(usable, math.ceil(self.limits.cpus)) if self.limits is not None else usable
        described: dict[str, object] = {
            "isolate_network": self.isolate_network,
            "apart": self.is_apart,
            "view": self.view.describe(home, cores) if self.view is not None else None,
            "limits": None,
        }
        if self.limits is not None:
            described["limits"] = {
                "nice": self.nice,
                "cpus": math.ceil(self.limits.cpus),
                "memory_bytes": self.limits.memory_mb * 1024 * 1024,
                "processes": self.limits.processes,
                "cpu_seconds": math.ceil(timeout * max(1.0, self.limits.cpus)) + 5,
                "file_bytes": FILE_BYTES,
            }
        return described


def run_bounded(
    argv: Sequence[str],
    *,
    timeout: float,
    bounds: Bounds,
    environment: Mapping[str, str],
    cwd: Path,
    stdin: bytes | None = None,
    progress: ProgressReporter | None = None,
    most_output: int | None = None,
) -> Completed:
    """Run *argv* in *bounds*; on timeout, or when this process dies, every process it started is killed.

    With *progress*, both streams come as one, in `stdout`, and line by line. With *most_output*, it is killed once a
    stream has had that many bytes, which are kept. Raises OutsideSystemError when this
    machine has no memory or process left to start it, Stopped when the run is to stop.
    """
    stop_request().raise_if_requested()
    if bounds.is_apart:
        seclude()
    lifeline = _Lifeline()
    described = bounds.describe(timeout, home=environment.get("HOME", "/"))
    modules = str(Path(confine.__file__).parent)
    task = {"argv": list(argv), "lifeline": lifeline.reading, "cwd": str(cwd), "modules": modules, **described}
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", _script(), marshal.dumps(task).hex()],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if progress is None else subprocess.STDOUT,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
            pass_fds=(lifeline.reading,),
        )
    except OSError as error:
        lifeline.close()
        if error.errno in (errno.ENOMEM, errno.EAGAIN, errno.EMFILE):
            raise OutsideSystemError("this machine", f"cannot start {argv[0]}", why=str(error)) from error
        raise
    cut = None if most_output is None else lifeline.cut
    kept = min(KEPT_BYTES, most_output or KEPT_BYTES)
    streams = [_Reader(process.stdout, progress, kept, cut)]
    if process.stderr:
        streams.append(_Reader(process.stderr, None, kept, cut))
    feeder = threading.Thread(target=_feed, args=(process, stdin), daemon=True)
    feeder.start()
    try:
        with stop_request().ending(lifeline.cut):
            timed_out = not _ends_within(process, timeout)
    finally:
        _end(process, lifeline)
    for thread in [*(stream.thread for stream in streams), feeder]:
        thread.join(GRACE_SECONDS)
    return Completed(
        rc=process.returncode,
        stdout=bytes(streams[0].kept),
        stderr=bytes(streams[1].kept) if len(streams) > 1 else b"",
        seconds=time.monotonic() - started,
        timed_out=timed_out,
    )


@cache
def can_confine() -> bool:
    """Return True if this machine lets untrusted code have a view: files, processes and a user of its own."""
    bounds = Bounds(ResourceLimits(), view=CommandView(()))
    return run_bounded(["/bin/true"], timeout=20, bounds=bounds, environment={}, cwd=Path("/")).ok


def _script() -> str:
    """The script that confines, compiled if that is known to be current: it starts for every sample."""
    compiled = cache_from_source(confine.__file__)
    return compiled if not sys.dont_write_bytecode and Path(compiled).exists() else confine.__file__


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Return True if *process* ends in time: the kernel notifies, while `Popen.wait` polls every 50 ms."""
    pidfd = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        return bool(poll.poll(1000 * seconds))
    finally:
        os.close(pidfd)


def _end(process: subprocess.Popen[bytes], lifeline: _Lifeline) -> None:
    """Make sure that *process* and its descendants are gone, even if waiting for it was interrupted."""
    lifeline.cut()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    lifeline.close()


def _feed(process: subprocess.Popen[bytes], content: bytes | None) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(content or b"")
        with suppress(BrokenPipeError):
            process.stdin.close()


class _Lifeline:
    """A pipe whose closing, by us or by our death, is the order to kill."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        self._uncut = threading.Lock()

    def cut(self) -> None:
        """Close the writing end, once, whichever thread is first."""
        if self._uncut.acquire(blocking=False):
            os.close(self._writing)

    def close(self) -> None:
        """Close both ends."""
        self.cut()
        os.close(self.reading)


class _Reader:
    """Reads a stream to its end in a thread, keeping the first and handing on every line."""

    def __init__(
        self, stream: IO[bytes] | None, progress: ProgressReporter | None, most: int, full: Callable[[], object] | None
    ) -> None:
        self.kept = bytearray()
        self._stream = stream
        self._progress = progress
        self._most = most
        self._full = full
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        if self._stream is None:
            return
        with self._stream:
            if self._progress is None:
                while chunk := self._stream.read1(65536):  # type: ignore[attr-defined]
                    self._keep(chunk)
                return
            for line in self._stream:
                self._keep(line)
                self._progress(line.decode(errors="replace").rstrip("\n"))

    def _keep(self, content: bytes) -> None:
        self.kept += content[: self._most - len(self.kept)]
        if self._full is not None and len(self.kept) == self._most:
            self._full()


@cache
def is_set_apart() -> bool:
    """Return True if the kernel isolates untrusted code: in a user namespace, or, for root, without capabilities."""
    if os.getuid() == 0:
        return True
    command = [sys.executable, "-I", "-S", "-c", _LEAVE]
    return subprocess.run(command, capture_output=True, check=False, env={}).returncode == 0


def seclude() -> None:
    """Restrict environment and memory of this process to root, if untrusted code runs as the same user.

    No debugger of this user's can be attached to it then, and it leaves no core.
    """
    if not is_set_apart():
        ctypes.CDLL(None).prctl(confine.PR_SET_DUMPABLE, 0, 0, 0, 0)
