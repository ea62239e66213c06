"""Usage of mirrors: a small file next to each mirror, locked by its readers.

The file outlives its mirror, so a lock on it never refers to another file. Its modification time is the last use, its
content the last measured size.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

BLOCK = 512
"""Bytes of the unit in which file systems count."""


class Hold:
    """A mirror is in use as long as somebody refers to this and has not released it; no process evicts it."""

    def __init__(self, path: Path) -> None:
        self._file: int | None = _open(path)
        fcntl.flock(self._file, fcntl.LOCK_SH)
        os.utime(self._file)

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """The mirror may go from now on; the last use ends now."""
        file, self._file = getattr(self, "_file", None), None
        if file is not None:
            with suppress(OSError):
                os.utime(file)
            os.close(file)


@dataclass(frozen=True)
class MirrorUse:
    """The use of the mirror at *mirror*, `owner/name.git`."""

    mirror: Path

    @property
    def _path(self) -> Path:
        return self.mirror.with_suffix(".use")

    def hold(self) -> Hold:
        """Mark the mirror as used. The caller holds the mirror's lock, which eviction needs. Raises OSError."""
        return Hold(self._path)

    @contextmanager
    def nobody(self) -> Iterator[bool]:
        """Yield True if the mirror is unused; then no one can begin to use it during the block. Raises OSError."""
        file = _open(self._path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(file)

    def last(self) -> datetime:
        """When the mirror was used last."""
        known = self._path if self._path.exists() else self.mirror
        return datetime.fromtimestamp(known.stat().st_mtime, UTC)

    def size(self) -> int:
        """Bytes that the mirror's removal frees: files shared with another repository by hard links are not counted.

        Measured again only if packs came or went since, which is how mirrors grow. Raises OSError.
        """
        packs = str((self.mirror / "objects" / "pack").stat().st_mtime_ns)
        with suppress(OSError, ValueError):
            measured, when = self._path.read_text().split()
            if when == packs:
                return int(measured)
        size = _freed_by(self.mirror)
        if self._path.exists():
            last = self._path.stat()
            self._path.write_text(f"{size} {packs}")
            os.utime(self._path, ns=(last.st_atime_ns, last.st_mtime_ns))
        return size


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _freed_by(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                facts = os.lstat(os.path.join(where, name))  # noqa: PTH118 — half the time of a Path for each file
                total += facts.st_blocks * BLOCK if facts.st_nlink == 1 else 0
    return total
