"""Files below a folder that others wrote: no link leads out of it, and nothing is read that is no file."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from .faults import Fault, FaultKind

LARGEST_FILE = 256 * 2**20
"""Bytes of a file that is read; a graph of a million points has some 30 MB."""

_LONGEST_NAME, _LONGEST_PATH = 255, 3500
"""Bytes of a file's name, and of its path below a folder of ours, that file systems take."""


def unusable(path: str) -> Fault | None:
    """Return the fault of a path that no file can have; None if one can."""
    name = path[:200].replace("\0", "\\0")
    if "\0" in path:
        return Fault(name, FaultKind.UNREADABLE, "a zero byte in its name")
    sizes = [len(part.encode()) for part in path.split("/")]
    if max(sizes) > _LONGEST_NAME or sum(sizes) + len(sizes) > _LONGEST_PATH:
        return Fault(name, FaultKind.TOO_LARGE, f"a name of {max(sizes):,} bytes in a path of {len(path):,}")
    return None


class Folder:
    """A folder, whose files are read by their paths in it."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._root = os.path.realpath(folder)
        self._safe: dict[str, bool] = {}

    def content(self, path: str) -> bytes | Fault:
        """Return the content of the file at *path*, or why it cannot be read."""
        if (fault := unusable(path)) is not None:
            return fault
        folder = path.rpartition("/")[0]
        if not self._is_inside(folder):
            return Fault(path, FaultKind.UNREADABLE, "leads out of the site")
        try:
            handle = os.open(f"{self._root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return Fault(path, FaultKind.ABSENT)
        except OSError as error:
            return Fault(path, FaultKind.UNREADABLE, error.strerror or str(error))
        try:
            told = os.fstat(handle)
            if not stat.S_ISREG(told.st_mode):
                return Fault(path, FaultKind.UNREADABLE, "is no file")
            if told.st_size > LARGEST_FILE:
                return Fault(path, FaultKind.TOO_LARGE, f"{told.st_size:,} bytes")
            return os.read(handle, told.st_size)
        except OSError as error:
            return Fault(path, FaultKind.UNREADABLE, error.strerror or str(error))
        finally:
            os.close(handle)

    def present(self, paths: Sequence[str]) -> str:
        """The first of *paths* that is there, or else the first of all."""
        if len(paths) == 1:
            return paths[0]
        return next((path for path in paths if os.path.lexists(f"{self._root}/{path}")), paths[0])

    def _is_inside(self, folder: str) -> bool:
        if folder not in self._safe:
            place = os.path.realpath(f"{self._root}/{folder}")
            self._safe[folder] = place == self._root or place.startswith(self._root + os.sep)
        return self._safe[folder]
