"""Running a program that may hang, with a clean environment."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """How the program ended. `timed_out` is never a success."""

    rc: int
    stdout: str
    stderr: str
    timed_out: bool = False


def run_bounded(
    arguments: Sequence[str], *, environment: Mapping[str, str], cwd: Path, timeout: float, stdin: str = ""
) -> Outcome:
    """Run *arguments* with nothing but *environment*; after *timeout* seconds all that it started is killed."""
    with subprocess.Popen(
        list(arguments),
        env=dict(environment),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill_group(process.pid)
            stdout, stderr = process.communicate()
            return Outcome(rc=process.returncode, stdout=stdout, stderr=stderr, timed_out=True)
        except BaseException:
            _kill_group(process.pid)
            raise
    return Outcome(rc=process.returncode, stdout=stdout, stderr=stderr)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
