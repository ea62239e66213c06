"""Failures of git: one table from its messages to our errors."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from formulacode_dagster.models.errors import FormulaCodeError, ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.reasons import FailureKind

from .command import GitError

SYSTEM = "git"
"""Name of the clone host in errors."""


class Fault(StrEnum):
    """Kinds of failure, in the order in which they are recognized."""

    DISK = "disk"
    LOCKED = "locked"
    BROKEN = "broken"
    VANISHED = "vanished"
    REFUSED_OBJECT = "refused_object"
    HOST = "host"
    PASSING = "passing"
    TIMEOUT = "timeout"
    OTHER = "other"


_TABLE: tuple[tuple[Fault, re.Pattern[str]], ...] = tuple(
    (fault, re.compile(pattern, re.IGNORECASE))
    for fault, pattern in (
        (Fault.DISK, r"no space left on device|disk quota exceeded|read-only file system"),
        (Fault.LOCKED, r"unable to create '.*\.lock': file exists"),
        (Fault.REFUSED_OBJECT, r"not our ref [0-9a-f]{40}|couldn't find remote ref \S+"),
        (
            Fault.BROKEN,
            r"is corrupt|inflate: data stream error|packfile .* (cannot be accessed|truncated|is invalid)|bad object"
            r"|unable to (unpack|read) |not a git repository: |file .*\.idx|index file .* (corrupt|too small)"
            r"|garbage at end|hash mismatch|sha1 mismatch|bad tree object|unknown object type|failed to apply delta"
            r"|at offset \d+ (in|from) .*\.pack|object file .* is empty|unterminated line in|unexpected line in"
            r"|is not a valid object|missing (blob|tree|commit) object|header for [0-9a-f]+ too long|unable to stream ",
        ),
        # GitHub asks strangers for a password for missing repositories, to hide private names
        (
            Fault.VANISHED,
            r"repository ['\"].*['\"] (not found|does not exist)|repository not found|returned error: (404|410|451)"
            r"|could not read (username|password)|authentication failed|dmca"
            r"|does not appear to be a git repository",
        ),
        (
            Fault.HOST,
            r"could not resolve (host|proxy)|failed to connect|couldn't connect|connection refused"
            r"|network is unreachable|no route to host|ssl certificate problem|ssl_connect",
        ),
        (
            Fault.PASSING,
            r"returned error: (429|5\d\d)|early eof|rpc failed|unexpected disconnect|the remote end hung up"
            r"|connection (was )?reset|operation (too slow|timed out)|timed out|unexpected eof|gnutls|broken pipe"
            r"|http2 framing|http/2 stream|empty reply|unable to access 'https?://",
        ),
    )
)


def fault_of(error: GitError) -> Fault:
    """Return the kind of failure of *error*."""
    if error.timed_out:
        return Fault.TIMEOUT
    return next((fault for fault, pattern in _TABLE if pattern.search(error.stderr)), Fault.OTHER)


def refused_object(error: GitError) -> str:
    """The commit or ref that the server does not have."""
    match = re.search(r"(?:not our ref|couldn't find remote ref) (\S+)", error.stderr, re.IGNORECASE)
    return match[1] if match else ""


def unlock(error: GitError, mirror: Path) -> None:
    """Remove the lock file of git's in *mirror* over which *error* stumbled, left by a git that was killed.

    Only for holders of the mirror's lock: no other git then writes there.
    """
    match = re.search(r"unable to create '(.*\.lock)': file exists", error.stderr, re.IGNORECASE)
    if match and mirror.resolve() in Path(match[1]).resolve().parents:
        Path(match[1]).unlink(missing_ok=True)


def translate(error: GitError, what: str, repository: str) -> FormulaCodeError:
    """Return the domain error for *error*, which occurred while doing *what* with *repository*."""
    fault = fault_of(error)
    why = error.stderr.splitlines()[-1] if error.stderr else f"git ended with {error.code}"
    subject = f"{what} {repository}"
    match fault:
        case Fault.DISK:
            return OutsideSystemError("disk", f"cannot {subject}", why=why, remedy="Free space under FC_MIRRORS_DIR")
        case Fault.HOST:
            return OutsideSystemError(
                SYSTEM, f"cannot {subject}", why=why, remedy="See whether the host in GITHUB_CLONE_URL answers"
            )
        case Fault.PASSING:
            what, remedy = f"git was cut off while it was to {subject}", "Run again to try again"
            return SuspectedOutage(SYSTEM, FailureKind.INCOMPLETE, what, why=why, remedy=remedy)
        case Fault.VANISHED:
            what = f"{repository} cannot be cloned: it is gone, or private"
            return SuspectedOutage(SYSTEM, FailureKind.VANISHED, what, why=why)
        case Fault.BROKEN:
            return ItemFailure(
                FailureKind.MIRROR_BROKEN,
                f"the mirror of {repository} is damaged",
                why=why,
                remedy="The next run rebuilds it",
            )
        case Fault.TIMEOUT:
            what = f"git took too long to {subject}"
            return SuspectedOutage(SYSTEM, FailureKind.TIMEOUT, what, why=why, remedy="Try again")
        case _:
            return ItemFailure(FailureKind.GIT, f"git failed to {subject}", why=why, log_tail=error.stderr)
