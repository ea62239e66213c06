"""Dagster's storage if it is SQLite: files below its folder, each copied as of one moment."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from .manifest import FILES_FOLDER, BackupFile, sha256_of
from .streams import CHUNK, ENCRYPTED, open_compressed, write_compressed


def save_files(dagster_home: Path, folder: Path, recipient: str) -> list[BackupFile]:
    """Write the databases in *dagster_home* to *folder*, encrypted for *recipient* unless that is empty."""
    saved: list[BackupFile] = []
    for source in sorted(dagster_home.rglob("*.db")):
        path = folder / FILES_FOLDER / source.relative_to(dagster_home)
        path = path.with_name(f"{path.name}.zst{ENCRYPTED if recipient else ''}")
        write_compressed(path, _content(source), recipient)
        told = {"path": str(path.relative_to(folder)), "bytes": path.stat().st_size, "sha256": sha256_of(path)}
        saved.append(BackupFile.model_validate(told))
    return saved


def load_file(backup: BackupFile, folder: Path, dagster_home: Path, identity: str) -> None:
    """Restore a file that `save_files` wrote."""
    name = backup.path.removesuffix(ENCRYPTED).removesuffix(".zst")
    target = dagster_home / Path(name).relative_to(FILES_FOLDER)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_compressed(folder / backup.path, identity) as content, target.open("wb") as file:
        while chunk := content.read(CHUNK):
            file.write(chunk)


def _content(source: Path) -> Iterator[bytes]:
    """A database as of now, though others write to it."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy.db"
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as live,
            closing(sqlite3.connect(copy)) as still,
        ):
            live.backup(still)
        with copy.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
