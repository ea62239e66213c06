"""Integrity of a mirror after `kill -9`, a full disk or foreign changes."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.operating.cancellation.clock import SYSTEM_CLOCK, Clock

from .blobs import REMOTE
from .command import GitError, git

BROKEN_MARK = "broken"
"""A file of this name in a mirror asks for its rebuilding."""
SHALLOW = "shallow"
CHECKSUM = 20
INDEXED_SECONDS = 10.0
"""git adds the index of a pack within moments; other processes fetch contents during the check."""


def damage_of(mirror: Path, clock: Clock = SYSTEM_CLOCK) -> str:
    """Return why *mirror* is unusable, empty if it is fine. Costs two short git calls, whatever its size."""
    return visible_damage(mirror, clock) or _read_damage(mirror)


def is_shallow(mirror: Path) -> bool:
    """Return True if the history of *mirror* is shallow: the source itself has no more of it."""
    return (mirror / SHALLOW).exists()


def visible_damage(mirror: Path, clock: Clock = SYSTEM_CLOCK) -> str:
    """Return the damage visible in the files, without a git call."""
    if not mirror.exists():
        return "absent"
    if (mirror / BROKEN_MARK).exists():
        return "found broken"
    if is_shallow(mirror):
        return "its history is cut short (shallow)"
    if (mirror / "info" / "grafts").exists():
        return "its history is altered (grafts)"
    packs = mirror / "objects" / "pack"
    for pack in packs.glob("*.pack"):
        if not _agree(pack, pack.with_suffix(".idx")) and not _is_new(pack, clock):
            return f"{pack.name} and its index do not fit"
    for index in packs.glob("*.idx"):
        if not index.with_suffix(".pack").exists():
            return f"{index.name} has no pack"
    configuration = mirror / "config"
    if not configuration.exists() or f'[remote "{REMOTE}"]' not in configuration.read_text():
        return "its configuration has no origin"
    return ""


def _read_damage(mirror: Path) -> str:
    try:
        refs = git(mirror, "for-each-ref", "--count=1", "--format=%(objectname)", "refs/heads/", "refs/tags/").split()
        if refs:
            git(mirror, "cat-file", "-e", f"{refs[0].decode()}^{{}}")
        elif any((mirror / "objects" / "pack").glob("*.pack")):
            return "its refs are lost"
    except GitError as error:
        return error.stderr or "its first branch cannot be read"
    return ""


def _is_new(pack: Path, clock: Clock) -> bool:
    try:
        return not pack.with_suffix(".idx").exists() and clock.time() - pack.stat().st_ctime < INDEXED_SECONDS
    except FileNotFoundError:
        return True


def _agree(pack: Path, index: Path) -> bool:
    """Return True if pack and index end with the same checksum; a truncated pack fails this."""
    try:
        with pack.open("rb") as content, index.open("rb") as listing:
            content.seek(-CHECKSUM, 2)
            listing.seek(-2 * CHECKSUM, 2)
            return content.read() == listing.read(CHECKSUM)
    except OSError:
        return False
