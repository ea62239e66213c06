"""Content by checksum in a folder: hashed in a temporary file, and renamed if the checksum matches."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterable
from pathlib import Path

from formulacode_dagster.operating.files.atomic import replacing, write_atomically


class WrongContentError(Exception):
    """The received content does not have the announced checksum."""


class ContentStore:
    """Files named by the SHA-256 of their content; existing ones are complete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Path of the content, whether or not it exists."""
        return self._folder / sha256

    def has(self, sha256: str) -> bool:
        """Return True if the content exists."""
        return self.path(sha256).is_file()

    def put(self, content: bytes) -> str:
        """Keep *content*; returns its SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.has(sha256):
            write_atomically(self.path(sha256), content)
        return sha256

    async def receive(self, chunks: AsyncIterable[bytes], sha256: str) -> None:
        """Store the received content if it hashes to *sha256*. Raises WrongContentError otherwise."""
        digest = hashlib.sha256()
        with replacing(self.path(sha256)) as partial:
            with await asyncio.to_thread(partial.open, "wb") as file:
                async for chunk in chunks:
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
            if digest.hexdigest() != sha256:
                raise WrongContentError(f"announced as {sha256}, hashes to {digest.hexdigest()}")

    def adopt(self, partial: Path, sha256: str) -> None:
        """Take over a finished file if it hashes to *sha256*. Raises WrongContentError otherwise."""
        with partial.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise WrongContentError(f"announced as {sha256}, hashes to {found}")
        partial.replace(self.path(sha256))
