"""Mirrors on disk, and their eviction: least recently used first."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .damage import visible_damage
from .use import MirrorUse

PARTIAL = ".partial"
"""Folder for mirrors being made or removed; a name in it is the repository's, with a comma for the slash, then `@`."""


class MirrorState(StrEnum):
    """Use of a mirror, which decides on its eviction."""

    READY = "ready"
    IN_USE = "in use"
    BROKEN = "broken"
    """The next use rebuilds it."""


@dataclass(frozen=True)
class KeptMirror:
    """A mirror on this machine, or a removed one; `bytes` is the freed space, `why` its damage."""

    repository: str
    bytes: int
    last_used: datetime
    state: MirrorState = MirrorState.READY
    why: str = ""

    def __str__(self) -> str:
        return f"{self.repository} ({self.bytes / 1e6:.1f} MB, last used {self.last_used:%Y-%m-%d %H:%M} UTC)"


def mirror_path(root: Path, repository: str) -> Path:
    """Return the path of the mirror of *repository*, whether it exists or not."""
    return root / f"{repository}.git"


@contextmanager
def locked(root: Path, repository: str, seconds: float) -> Iterator[None]:
    """Hold the exclusive lock for making, fetching or removing the mirror of *repository*. Raises Timeout, OSError."""
    lock = root / f"{repository}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock, timeout=seconds):
        yield


def kept_mirrors(root: Path) -> list[KeptMirror]:
    """The mirrors below *root*, those used last first. Raises OSError."""
    mirrors = [_kept(repository, root) for repository in repositories(root)]
    return sorted(
        (mirror for mirror in mirrors if mirror is not None), key=lambda mirror: mirror.last_used, reverse=True
    )


def evict(root: Path, repository: str) -> KeptMirror:
    """Remove the mirror of *repository*.

    Raises ConfigurationError if there is none, ItemFailure `busy` while it is in use, OSError.
    """
    if not mirror_path(root, repository).is_dir():
        raise ConfigurationError(f"there is no mirror of {repository}", remedy="`fc-data mirrors` lists them")
    gone = _remove(root, repository)
    if gone is None:
        raise ItemFailure(
            FailureKind.BUSY, f"the mirror of {repository} is in use", remedy="Wait for the run that reads it"
        )
    return gone


def make_room(root: Path, budget: int) -> tuple[list[KeptMirror], int]:
    """Remove mirrors until those below *root* take *budget* bytes at most; the mirrors removed, and the bytes left.

    Mirrors in use stay, so more than *budget* may be left. Raises OSError.
    """
    _sweep(root)
    uses = [(repository, MirrorUse(mirror_path(root, repository))) for repository in repositories(root)]
    sized = [(use.last(), use.size(), repository) for repository, use in uses if use.mirror.exists()]
    left = sum(size for _, size, _ in sized)
    evicted = []
    for _, _, repository in sorted(sized):
        if left <= budget:
            break
        gone = _remove(root, repository)
        if gone is not None:
            evicted.append(gone)
            left -= gone.bytes
    return evicted, left


def partial_path(root: Path, repository: str, purpose: str) -> Path:
    """Return a temporary path for a mirror of *repository* being made or removed."""
    folder = root / PARTIAL
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{_stem(repository)}{purpose}-{uuid.uuid4().hex}"


def clear_partial(root: Path, repository: str) -> None:
    """Remove leftovers of dead processes; the caller holds the lock of *repository*."""
    for left in (root / PARTIAL).glob(f"{_stem(repository)}*"):
        shutil.rmtree(left, ignore_errors=True)


def _stem(repository: str) -> str:
    return f"{repository.replace('/', ',')}@"


def repositories(root: Path) -> list[str]:
    """Names of those that have a mirror below *root*."""
    return sorted(str(path.relative_to(root)).removesuffix(".git") for path in root.glob("[!.]*/*.git"))


def _kept(repository: str, root: Path) -> KeptMirror | None:
    use = MirrorUse(mirror_path(root, repository))
    try:
        why = visible_damage(use.mirror)
        with use.nobody() as unused:
            state = MirrorState.BROKEN if why else MirrorState.READY if unused else MirrorState.IN_USE
        return KeptMirror(repository, use.size(), use.last(), state, why)
    except FileNotFoundError:
        return None


def _remove(root: Path, repository: str) -> KeptMirror | None:
    """Remove one mirror; None when somebody uses or makes it, or it is gone."""
    use = MirrorUse(mirror_path(root, repository))
    evicted = partial_path(root, repository, "evicted")
    try:
        with locked(root, repository, 0), use.nobody() as unused:
            if not unused:
                return None
            gone = KeptMirror(repository, use.size(), use.last())
            use.mirror.rename(evicted)
    except (Timeout, FileNotFoundError):
        return None
    shutil.rmtree(evicted, ignore_errors=True)
    return gone


def _sweep(root: Path) -> None:
    """Remove leftovers of dead processes, for all repositories."""
    for repository in {path.name.partition("@")[0].replace(",", "/") for path in (root / PARTIAL).glob("*@*")}:
        try:
            with locked(root, repository, 0):
                clear_partial(root, repository)
        except Timeout:
            continue
