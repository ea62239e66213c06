"""Running a program that may hang, with a clean environment."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.running.programs import run_program


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
    try:
        done = run_program(arguments, environment=environment, cwd=cwd, timeout=timeout, stdin=stdin.encode())
    except subprocess.TimeoutExpired as late:
        return Outcome(rc=-1, stdout=_text(late.stdout), stderr=_text(late.stderr), timed_out=True)
    return Outcome(rc=done.returncode, stdout=_text(done.stdout), stderr=_text(done.stderr))


def _text(said: bytes | None) -> str:
    return (said or b"").decode("utf-8", "replace")
