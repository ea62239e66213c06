"""Free space on a disk during a build: output of untrusted code that says there is none has to be confirmed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

FULL_BYTES = 1 << 30
"""A disk with less free space counts as full: a program that failed has removed part of its files again."""
FULL_FILES = 100
"""The same for a file system with a fixed number of files."""
POLL_SECONDS = 0.5


class SpaceWatch:
    """Records whether a disk of *folders* is full at any time in a `with` block. None is a folder of another machine:
    nothing is known about it.
    """

    def __init__(self, *folders: Path | None) -> None:
        self._folders = [folder for folder in folders if folder is not None]
        self._over = threading.Event()
        self.was_full = False

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            self._look()

    def _look(self) -> None:
        self.was_full = self.was_full or any(map(is_full, self._folders))


def is_full(folder: Path) -> bool:
    """Return True if the disk of *folder* is full, or as good as full; False if *folder* cannot be found."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return False
    # btrfs, for one, has no fixed number of files, and reports 0
    return space.f_bavail * space.f_frsize < FULL_BYTES or (space.f_files > 0 and space.f_favail < FULL_FILES)
