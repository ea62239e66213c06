"""Chunks of bytes, read as a file."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class ByteChunks(io.RawIOBase):
    """A readable file over an iterable of *chunks*."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._left = b""

    def readable(self) -> bool:
        """Return True: it can only be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Copy at most one chunk into *buffer*, and return how many bytes; 0 at the end."""
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = bytes(chunk)
        view = memoryview(buffer).cast("B")
        taken, self._left = self._left[: len(view)], self._left[len(view) :]
        view[: len(taken)] = taken
        return len(taken)
