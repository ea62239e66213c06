"""The manifest of a backup. It is written last: a folder without one is not a backup."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pydantic import Field, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError

MANIFEST = "manifest.json"


class TableOwner(StrEnum):
    """Whose tables they are."""

    PLATFORM = "platform"
    DAGSTER = "dagster"


class BackupFile(Frozen):
    """One file of a backup."""

    path: str = Field(description="below the folder of the backup")
    bytes: int
    sha256: str = Field(description="of the stored file, compressed and perhaps encrypted")


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

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in (*self.tables, *self.files))


def read_manifest(folder: Path) -> BackupManifest:
    """The manifest of the backup in *folder*, every file of which is there as it was written.

    Raises ConfigurationError if there is none, or a file is missing or differs.
    """
    path = folder / MANIFEST
    try:
        manifest = BackupManifest.model_validate_json(path.read_bytes())
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
    for file in (*manifest.tables, *manifest.files):
        lies = folder / file.path
        if not lies.is_file() or sha256_of(lies) != file.sha256:
            raise ConfigurationError(
                f"{lies} is {'another' if lies.is_file() else 'not there'}",
                remedy="The backup was damaged after it was made: take another",
            )
    return manifest


def sha256_of(path: Path) -> str:
    """Hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
