"""The mirrors on this machine: one bare repository each, made once, fetched when something is missing.

A mirror appears whole or not at all: it is cloned beside its place and renamed into it. A file lock per repository lets
several processes use one cache.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError

from .blobs import missing_objects
from .command import GitError, git
from .history import BROKEN_MARK, Mirror
from .remote import Remote, checked_name

__all__ = ["Mirror", "MirrorCache"]

LOCK_SECONDS = 3600.0
PARTIAL = ".partial"
CHECKSUM = 20


class MirrorCache:
    """Mirrors under *root*, as `owner/name.git`, of the repositories below *clone_url*."""

    def __init__(self, root: Path, clone_url: str, *, filtered: bool | None = None) -> None:
        self._root = root
        self._remote = Remote(clone_url, filtered=filtered)
        self._refused: set[tuple[str, str]] = set()

    def ensure(self, repository: str, *, commits: Sequence[str] = (), refs: Sequence[str] = ()) -> Mirror:
        """The mirror of *repository*, holding *commits* and *refs* (`refs/pull/7/head`) where the host has them.

        The network is used only when the mirror or one of them is missing. What the host does not have stays missing,
        is not asked for again by this object, and raises ItemFailure `commit_missing` when it is read.
        Raises ItemFailure `vanished`, `timeout`, `name`, `busy`; OutsideSystemError when the host or the disk is dead.
        """
        path = self._root / f"{checked_name(repository)}.git"
        wanted = [one for one in (*commits, *refs) if (repository, one) not in self._refused]
        try:
            with self._locked(repository):
                if _fault_in(path):
                    self._rebuild(repository, path)
                if _missing(path, wanted):
                    self._remote.update(repository, path)
                if missing := _missing(path, wanted):
                    self._remote.fetch(repository, path, missing)
                    self._refused.update((repository, one) for one in _missing(path, missing))
        except OSError as error:
            raise OutsideSystemError(
                "disk", f"cannot write the mirror of {repository}", why=str(error), remedy="Look at FC_MIRRORS_DIR"
            ) from error
        return Mirror(repository, path)

    @contextmanager
    def _locked(self, repository: str) -> Iterator[None]:
        lock = self._root / f"{repository}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(lock, timeout=LOCK_SECONDS):
                yield
        except Timeout as error:
            raise ItemFailure(
                "busy", f"another process has held the mirror of {repository} for an hour", remedy=f"See {lock}"
            ) from error

    def _rebuild(self, repository: str, path: Path) -> None:
        partial = self._root / PARTIAL
        partial.mkdir(parents=True, exist_ok=True)
        stem = repository.replace("/", "__") + "@"
        # We hold the lock: whatever lies here under this name was left by a process that died.
        for left in partial.glob(f"{stem}*"):
            shutil.rmtree(left, ignore_errors=True)
        fresh, old = partial / f"{stem}{uuid.uuid4().hex}", partial / f"{stem}old"
        try:
            self._remote.clone(repository, fresh)
            if path.exists():
                path.rename(old)
            fresh.rename(path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


def _fault_in(path: Path) -> str:
    """Why the mirror cannot be used, empty when it can: absent, marked, unreadable, or with a pack cut short."""
    if not path.exists():
        return "absent"
    if (path / BROKEN_MARK).exists():
        return "found broken"
    for index in (path / "objects" / "pack").glob("*.idx"):
        if not _agree(index.with_suffix(".pack"), index):
            return f"{index.stem} is damaged"
    try:
        refs = git(path, "for-each-ref", "--count=1", "--format=%(objectname)").split()
        if refs:
            git(path, "cat-file", "-e", f"{refs[0].decode()}^{{}}")
            git(path, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
    except GitError as error:
        return error.stderr or "HEAD cannot be read"
    return ""


def _agree(pack: Path, index: Path) -> bool:
    """Whether pack and index end with the same checksum of the pack; true of no pack that was cut short."""
    try:
        with pack.open("rb") as content, index.open("rb") as listing:
            content.seek(-CHECKSUM, 2)
            listing.seek(-2 * CHECKSUM, 2)
            return content.read() == listing.read(CHECKSUM)
    except OSError:
        return False


def _missing(path: Path, wanted: Sequence[str]) -> list[str]:
    """Those of the commits and refs *wanted* that *path* lacks, without asking the host for them."""
    shas = [one for one in wanted if re.fullmatch(r"[0-9a-f]{40}", one)]
    refs = [one for one in wanted if one.startswith("refs/")]
    lacking = missing_objects(path, shas) if shas else set()
    known = set(git(path, "for-each-ref", "--format=%(refname)", *refs).decode().split()) if refs else set()
    return [one for one in wanted if one in lacking or (one in refs and one not in known)]
