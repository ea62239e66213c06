"""Turns the end of a build into the right error."""

from __future__ import annotations

import re

from formulacode_dagster.models.errors import FormulaCodeError, ItemFailure, OutsideSystemError

TAIL_LINES = 60
_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_INDEX_DEAD = re.compile(
    r"dns error|failed to lookup address|client error \(connect\)|connection refused|network is unreachable"
    r"|temporary failure in name resolution|invalid peer certificate",
    re.IGNORECASE,
)


class BuildFailure(ItemFailure):
    """A build that failed, with its whole log."""

    def __init__(self, kind: str, what: str, *, log: str, why: str = "", remedy: str = "") -> None:
        super().__init__(kind, what, why=why, remedy=remedy, log_tail=tail(log))
        self.log = log


def tail(log: str) -> str:
    """The last lines of *log*, those that explain a failure."""
    return "\n".join(log.rstrip().splitlines()[-TAIL_LINES:])


def failure_of(what: str, *, log: str, online: bool, timed_out: bool, seconds: float) -> FormulaCodeError:
    """The error for a build step that did not succeed; *online* says whether the step may reach the package index."""
    end = tail(log)
    if _DISK_FULL.search(end):
        return OutsideSystemError("disk", f"{what}: no space left", remedy="Free some space, then run again")
    if timed_out:
        return BuildFailure("timeout", f"{what} was killed after {seconds:.0f} s", log=log)
    if online and _INDEX_DEAD.search(end):
        return OutsideSystemError(
            "package index",
            f"{what}: no answer",
            why=_last_line(end),
            remedy="Check the network and the index settings",
        )
    return BuildFailure("build", f"{what} failed", log=log, why=_last_line(end))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
