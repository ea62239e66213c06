"""What builds of equal locks share: their installed dependencies, kept as they were before any repository's code ran.

A build takes a copy, never a link: what it runs could reach the others through it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.engines.folders import copy_tree, remove_tree, size_of
from formulacode_dagster.engines.image_store import TrimmedCache
from formulacode_dagster.models.errors import OutsideSystemError

from .layout import folder_lock, subfolders

SHARED = ("build", "venv", "tests")


@dataclass(frozen=True)
class KeptTier:
    """The place of one tier, while nobody else has it."""

    folder: Path
    half: Path
    """Where it is copied to until it is whole."""

    @property
    def is_there(self) -> bool:
        """Whether an earlier build has made it."""
        return self.folder.is_dir()

    def lay(self, target: Path) -> None:
        """Copy it into *target*; raises OutsideSystemError when the disk is full."""
        os.utime(self.folder)
        _copy(self.folder, target)

    def keep(self, source: Path) -> None:
        """Keep what was just installed in *source*; raises OutsideSystemError when the disk is full."""
        remove_tree(self.half)
        self.half.mkdir(parents=True)
        _copy(source, self.half)
        self.folder.parent.mkdir(exist_ok=True)
        self.half.rename(self.folder)


class TierCache:
    """The `env` tiers that were built below *root*, by a name for all they were made of."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tiers = root / "tiers"

    @contextmanager
    def locked(self, name: str) -> Iterator[KeptTier]:
        """The tier *name*, once whoever makes it now has ended."""
        with folder_lock(self._root, name):
            yield KeptTier(self._tiers / name, self._root / "building" / name)

    def trim(self, budget: int | None, *, dry_run: bool) -> TrimmedCache:
        """Remove tiers, those used least recently first, until they take *budget* bytes at most (None: no limit)."""
        sizes = {folder: size_of(folder) for folder in subfolders(self._tiers)}
        left = before = sum(sizes.values())
        records = 0
        for folder in sorted(sizes, key=lambda folder: (folder.stat().st_mtime, folder.name)):
            if budget is None or left <= budget:
                break
            if not dry_run:
                with folder_lock(self._root, folder.name):
                    remove_tree(folder)
            records, left = records + 1, left - sizes[folder]
        return TrimmedCache(records=records, bytes_before=before, bytes_after=left)


def _copy(source: Path, target: Path) -> None:
    try:
        copy_tree(source, target, SHARED)
    except subprocess.CalledProcessError as error:
        raise OutsideSystemError(
            "disk", f"cannot copy {source} to {target}", why=str(error), remedy="Free some space"
        ) from error
