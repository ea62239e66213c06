"""Child programs, each in a process group that is killed on timeout or when the run stops."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .stopping import stop_request


def run_program(
    command: Sequence[str],
    *,
    timeout: float | None = None,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    into: IO[bytes] | None = None,
    most: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run *command* to its end with nothing but *environment* (default: ours), and read both its streams.

    Output goes to the file *into*, if given. A program without *stdin* is killed as soon as it has written more than
    *most* bytes; the output is then longer than that.

    Raises subprocess.TimeoutExpired, with the output so far, after *timeout* seconds; Stopped; OSError if it cannot be
    started. None of its processes remains then.
    """
    stop_request().raise_if_requested()
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE if into is None else into,
            stderr=complaints,
            start_new_session=True,
            env=None if environment is None else dict(environment),
            cwd=cwd,
        ) as process,
        killed_at_a_stop(process),
    ):
        late = threading.Event()
        alarm = threading.Timer(threading.TIMEOUT_MAX if timeout is None else timeout, _end, (process, late))
        alarm.start()
        try:
            if most is None or process.stdout is None:
                said = process.communicate(stdin)[0] or b""
            elif len(said := process.stdout.read(most + 1)) > most:
                kill_group(process)
            process.wait()
        finally:
            alarm.cancel()
        complaints.seek(0)
        complained = complaints.read()
    if late.is_set():
        raise subprocess.TimeoutExpired(process.args, timeout or 0, said, complained)
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    kill_group(process)


@contextmanager
def killed_at_a_stop(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill the group of *process* when a stop is requested inside the block, which then raises Stopped."""
    try:
        with stop_request().ending(lambda: kill_group(process)):
            yield
    except BaseException:
        kill_group(process)
        raise


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill *process*, a group leader, and its group; a process that has ended is fine."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
