"""The mirrors on this machine: one bare repository each, made once, fetched when something is missing.

A mirror appears complete or not at all: it is cloned next to its place and renamed. A file lock per repository lets
several processes share a cache; another one protects mirrors in use from eviction.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from filelock import Timeout

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.backoff import Backoff
from formulacode_dagster.operating.cancellation.clock import SYSTEM_CLOCK, Clock

from .blobs import missing_objects
from .command import GitError, git
from .damage import damage_of, is_shallow
from .eviction import KeptMirror, clear_partial, locked, make_room, mirror_path, partial_path
from .history import Mirror
from .remote import BACKOFF, KEPT, GitRemote, checked_name
from .use import Hold, MirrorUse

__all__ = ["Mirror", "MirrorCache"]

LOCK_SECONDS = 3600.0
UPDATED = "formulacode-updated"
"""File of a mirror that is as old as its last update from the network."""


class MirrorCache:
    """Mirrors under *root*, as `owner/name.git`, of the repositories below *clone_url*.

    If they exceed *budget* bytes (None: no limit) after one has grown, the least recently used are removed, and *say*
    reports it; a mirror that any process has open stays. A renamed repository is cloned again under its new name:
    commits are the same under both, and the old mirror becomes the least recently used.
    """

    def __init__(
        self,
        root: Path,
        clone_url: str,
        *,
        filtered: bool | None = None,
        budget: int | None = None,
        say: Callable[[str], None] | None = None,
        backoff: Backoff = BACKOFF,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._root = root
        self._clock = clock
        self._remote = GitRemote(clone_url, filtered=filtered, backoff=backoff)
        self._budget = budget
        self._say = say
        self._refused: set[tuple[str, str]] = set()
        self.evicted: list[KeptMirror] = []

    def ensure(self, repository: str, *, commits: Sequence[str] = (), since: datetime | None = None) -> Mirror:
        """Return the mirror of *repository*, with *commits* if the host has them.

        It stays on this machine until it is closed or garbage collected. The network is used only if the mirror or one
        of *commits* is missing, or all of its branches are older than *since*. Commits that the host lacks stay
        missing, are not requested again by this object, and raise ItemFailure `commit_missing` when read. Raises
        ItemFailure `vanished`, `shallow`, `timeout`, `name`, `busy`, `mirror_broken`; OutsideSystemError if the host or
        the disk is dead.
        """
        path = mirror_path(self._root, checked_name(repository))
        wanted = [commit for commit in commits if (repository, commit) not in self._refused]
        try:
            with locked(self._root, repository, LOCK_SECONDS):
                hold, grown = self._hold(repository, path, wanted, since)
            if grown:
                self._make_room()
        except Timeout as error:
            raise ItemFailure(
                FailureKind.BUSY,
                f"another process has held the mirror of {repository} for an hour",
                remedy=f"See {self._root}",
            ) from error
        except OSError as error:
            raise OutsideSystemError(
                "disk", f"cannot write the mirror of {repository}", why=str(error), remedy="Look at FC_MIRRORS_DIR"
            ) from error
        return Mirror(repository, path, hold)

    def _hold(self, repository: str, path: Path, wanted: Sequence[str], since: datetime | None) -> tuple[Hold, bool]:
        """The mirror brought up to date, and whether that took the network."""
        grown = bool(damage_of(path, self._clock))
        if grown:
            self._rebuild(repository, path)
        self._remote.point(path, repository)
        missing = _missing(path, wanted)
        if missing or (since is not None and not grown and _is_older(path, since.timestamp())):
            grown = True
            self._remote.update(repository, path)
            if missing := _missing(path, missing):
                self._remote.fetch(repository, path, missing)
                self._refused.update((repository, sha) for sha in _missing(path, missing))
        if grown:
            (path / UPDATED).touch()
        return MirrorUse(path).hold(), grown

    def _rebuild(self, repository: str, path: Path) -> None:
        clear_partial(self._root, repository)
        fresh, old = (partial_path(self._root, repository, purpose) for purpose in ("fresh", "old"))
        try:
            self._remote.clone(repository, fresh)
            if damage := damage_of(fresh, self._clock):
                kind = FailureKind.SHALLOW if is_shallow(fresh) else FailureKind.MIRROR_BROKEN
                raise ItemFailure(kind, f"a fresh clone of {repository} cannot be used", why=damage)
            if path.exists():
                # another process may be reading the damaged one, and need what it was fetched for
                self._remote.fetch(repository, fresh, _fetched_by_hash(path))
                path.rename(old)
            fresh.rename(path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)

    def _make_room(self) -> None:
        if self._budget is None:
            return
        evicted, left = make_room(self._root, self._budget)
        self.evicted += evicted
        if self._say is not None and evicted:
            self._say(f"evicted from {self._root}: {', '.join(map(str, evicted))}")
        if self._say is not None and left > self._budget:
            over = (left - self._budget) / 1e6
            self._say(f"{self._root} is {over:.0f} MB over FC_MIRRORS_GB: all its mirrors are in use")


def _fetched_by_hash(path: Path) -> list[str]:
    """The commits that the mirror *path* was asked for, as far as it can still be read."""
    try:
        listed = git(path, "for-each-ref", "--format=%(refname)", f"{KEPT}/").decode().split()
    except GitError:
        return []
    return [name.removeprefix(f"{KEPT}/") for name in listed]


def _is_older(path: Path, since: float) -> bool:
    """Return True if it was neither fetched since then nor has a later commit: a project may have made none."""
    updated = path / UPDATED
    return _newest(path) < since and not (updated.exists() and updated.stat().st_mtime >= since)


def _newest(path: Path) -> float:
    """When the newest commit of any branch was made, in seconds since 1970; 0 without any."""
    newest = git(
        path, "for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(committerdate:unix)", "refs/heads/"
    )
    return float(newest.decode().strip() or 0)


def _missing(path: Path, wanted: Sequence[str]) -> list[str]:
    """Return those of the commits *wanted* that *path* lacks, without asking the host for them."""
    hashes = [name for name in wanted if re.fullmatch(r"[0-9a-f]{40}", name)]
    lacking = missing_objects(path, hashes) if hashes else set()
    return [sha for sha in hashes if sha in lacking]
