"""The manifest of a backup. It is written last: a folder without one is not a backup."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath

from pydantic import Field, ValidationError, field_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.files.atomic import write_atomically

MANIFEST = "manifest.json"
MAC = "manifest.hmac"
"""HMAC-SHA256 of the manifest's bytes. The manifest has the hashes of all files, which only a MAC protects in turn."""


class TableOwner(StrEnum):
    """Whose tables they are."""

    PLATFORM = "platform"
    DAGSTER = "dagster"


FILES_FOLDER, HOME_FOLDER = "dagster-files", "home-files"
FOLDERS = frozenset({*TableOwner, FILES_FOLDER, HOME_FOLDER})


class BackupFile(Frozen):
    """One file of a backup."""

    path: str = Field(description="below the folder of the backup")
    bytes: int
    sha256: str = Field(description="of the stored file, compressed and perhaps encrypted")

    @field_validator("path")
    @classmethod
    def _stays_below(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if len(parts) < 2 or parts[0] not in FOLDERS or ".." in parts or "\0" in path:
            raise ValueError(f"{path!r} leads out of the backup")
        return path


class TableBackup(BackupFile):
    """The rows of one table."""

    origin: TableOwner
    table: str
    columns: tuple[str, ...]
    rows: int


class BackupManifest(Frozen):
    """Contents of a backup, its time, and the platform that made it."""

    made_at: datetime
    version: str = Field(description="of the platform")
    migrations: tuple[str, ...] = Field(description="that the platform's database had")
    encrypted: bool
    tables: tuple[TableBackup, ...]
    files: tuple[BackupFile, ...] = Field(description="of Dagster's storage, unless it is Postgres")
    home: tuple[BackupFile, ...] = Field(default=(), description="that no database has: dashboards, a local dataset")
    home_paths: dict[str, str] = Field(
        default_factory=dict, description="where these were, by name; empty: not recorded"
    )

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in (*self.tables, *self.files, *self.home))


def write_manifest(manifest: BackupManifest, folder: Path, key: str) -> None:
    """Write the manifest to *folder*, and its MAC if *key* is not empty. Raises OSError."""
    content = manifest.model_dump_json(indent=1).encode()
    if key:
        write_atomically(folder / MAC, _mac(content, key).encode())
    write_atomically(folder / MANIFEST, content)


def read_manifest(folder: Path, key: str = "") -> BackupManifest:
    """The manifest of the backup in *folder*, every file of which is there as it was written.

    Raises ConfigurationError if there is none, a file is missing or differs, or *key* is given and gives another MAC.
    """
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
        _require_mac(folder, content, key)
        manifest = BackupManifest.model_validate_json(content)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} is not a backup: it has no {MANIFEST}",
            why=error.strerror or str(error),
            remedy="Take another: one that was cut in the middle has none",
        ) from error
    except ValidationError as error:
        raise ConfigurationError(
            f"{path} cannot be read", why=str(error)[:300], remedy="Take another backup, or the platform that made it"
        ) from error
    for file in (*manifest.tables, *manifest.files, *manifest.home):
        lies = folder / file.path
        # a link could lead to a file that the restoring user can read and the backup's writer cannot
        if not lies.resolve().is_relative_to(folder.resolve()):
            raise ConfigurationError(f"{lies} leads out of the backup", remedy="Somebody changed it: take another")
        if not lies.is_file() or sha256_of(lies) != file.sha256:
            raise ConfigurationError(
                f"{lies} is {'another' if lies.is_file() else 'not there'}",
                remedy="The backup was damaged after it was made: take another",
            )
    return manifest


def _require_mac(folder: Path, content: bytes, key: str) -> None:
    if not key:
        return
    file = folder / MAC
    found = file.read_bytes() if file.is_file() else b""
    if not hmac.compare_digest(found, _mac(content, key).encode()):
        raise ConfigurationError(
            f"{folder} has {'another' if found else 'no'} MAC than that of FC_BACKUP_KEY",
            why="somebody changed it, or it was made with another key or without one",
            remedy="Take another backup; leave FC_BACKUP_KEY empty only for one that you trust",
        )


def _mac(content: bytes, key: str) -> str:
    return hmac.new(key.encode(), content, hashlib.sha256).hexdigest()


def sha256_of(path: Path) -> str:
    """Hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
