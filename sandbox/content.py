"""Content by checksum in a folder: hashed while it is written aside, and renamed when it is what it claims."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterable
from pathlib import Path

BLOCK = 1 << 20


class WrongContentError(Exception):
    """What arrived does not have the checksum it was announced with."""


class ContentStore:
    """Files named by the SHA-256 of what they hold; what is there is whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Where the content lies, or would."""
        return self._folder / sha256

    def has(self, sha256: str) -> bool:
        """Whether the content is there."""
        return self.path(sha256).is_file()

    def put(self, content: bytes) -> str:
        """Keep *content*; returns its SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.has(sha256):
            write_whole(self.path(sha256), content)
        return sha256

    async def receive(self, chunks: AsyncIterable[bytes], sha256: str) -> int:
        """Keep what arrives if it hashes to *sha256*; returns its size. Raises WrongContentError otherwise."""
        handle, name = await asyncio.to_thread(tempfile.mkstemp, dir=self._folder, prefix=".partial-")
        partial, digest, size = Path(name), hashlib.sha256(), 0
        try:
            with os.fdopen(handle, "wb") as file:
                async for chunk in chunks:
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
                    size += len(chunk)
            if digest.hexdigest() != sha256:
                raise WrongContentError(f"announced as {sha256}, hashes to {digest.hexdigest()}")
            await asyncio.to_thread(partial.replace, self.path(sha256))
        finally:
            await asyncio.to_thread(partial.unlink, missing_ok=True)
        return size

    def adopt(self, partial: Path, sha256: str) -> None:
        """Take over a finished file if it hashes to *sha256*. Raises WrongContentError otherwise."""
        digest = hashlib.sha256()
        with partial.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        if digest.hexdigest() != sha256:
            raise WrongContentError(f"announced as {sha256}, hashes to {digest.hexdigest()}")
        partial.replace(self.path(sha256))


def write_whole(path: Path, content: bytes) -> None:
    """Make *content* the file at *path*, at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
