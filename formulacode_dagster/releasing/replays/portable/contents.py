"""The files of an unpacked archive, each checked against the hash in its manifest."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

MANIFEST = "manifest.json"
CHUNK = 1 << 20


class ArchiveRefusedError(Exception):
    """The archive, this machine or the file of results does not allow a replay; the message says why."""


class Contents:
    """An unpacked archive in *folder*."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            with open(self.path(MANIFEST), "rb") as file:
                content = file.read()
            self.manifest: dict[str, Any] = json.loads(content)
        except (OSError, ValueError) as error:
            raise ArchiveRefusedError(f"{self.path(MANIFEST)} cannot be read: {error}") from error
        self.sha256 = hashlib.sha256(content).hexdigest()
        """Identity of the archive."""

    def path(self, name: str) -> str:
        """Path of a file of the archive."""
        return os.path.join(self.folder, *name.split("/"))

    def read(self, name: str) -> bytes:
        """Content of a file of the archive."""
        with open(self.path(name), "rb") as file:
            return file.read()

    def blob(self, digest: str) -> str:
        """Path of a blob of the OCI layout."""
        algorithm, _, value = digest.partition(":")
        return self.path(f"oci/blobs/{algorithm}/{value}")

    def verify(self) -> int:
        """Return the bytes of all files of the manifest; raises ArchiveRefusedError if one is missing or differs."""
        differing, total = [], 0
        for name, expected in sorted(self.manifest["files"].items()):
            try:
                found, size = _hash_of(self.path(name))
            except OSError as error:
                differing.append(f"{name} cannot be read ({error.strerror})")
                continue
            total += size
            if found != expected:
                differing.append(f"{name} hashes to {found}, not to {expected}")
        if differing:
            raise ArchiveRefusedError(f"{len(differing)} files are not as they were packed: {'; '.join(differing[:5])}")
        return total


def _hash_of(path: str) -> tuple[str, int]:
    """SHA-256 of a file, and its bytes."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size
