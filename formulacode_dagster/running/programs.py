"""Programs of this machine, each in a group of its own that is killed when it is late, or when the run is to stop."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .stopping import stop_request


def run_program(
    command: Sequence[str],
    *,
    timeout: float | None = None,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run *command* to its end with nothing but *environment* (default: ours), and read both its streams.

    Raises subprocess.TimeoutExpired, with what was read, after *timeout* seconds; Stopped; OSError when it cannot be
    started. Nothing that it started is left then.
    """
    stop_request().raise_if_requested()
    with (
        subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=None if environment is None else dict(environment),
            cwd=cwd,
        ) as process,
        killed_at_a_stop(process),
    ):
        try:
            said, complained = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            kill_group(process)
            late.stdout, late.stderr = process.communicate()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


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
    """Kill *process*, a leader of its group, and what it started; one that has ended is fine."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
