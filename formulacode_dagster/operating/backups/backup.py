"""Making a backup, taking one back, and removing the oldest."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import Engine, exists, select

from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.files.atomic import PARTIAL, disk_errors
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.migrations import migrate, read_migrations, rewind
from formulacode_dagster.operating.store.tables import METADATA
from formulacode_dagster.operating.store.views import VIEWS

from .dagster_files import load_file, save_files
from .destinations import rename_destinations
from .home_files import absolute_paths, load_home, save_home, targets_of
from .manifest import MANIFEST, BackupManifest, TableBackup, TableOwner, read_manifest, write_manifest
from .streams import require_recipient
from .tables import load_tables, save_table, snapshot, tables_of

_KEPT_BY_MIGRATIONS = "schema_migrations"
_OF_ALEMBIC = "alembic_version"
_OF_OPENING = frozenset(
    {
        *(_KEPT_BY_MIGRATIONS, _OF_ALEMBIC, "secondary_indexes", "instance_info"),
        *("concurrency_limits", "concurrency_slots", "daemon_heartbeats", "kvs"),
    }
)
"""Tables that have rows as soon as a database is migrated, or Dagster's opened with its pools: no loss."""

CUT_AFTER_SECONDS = 86_400.0


def back_up(
    database: Database,
    dagster: Engine | Path,
    into: Path,
    *,
    home: Mapping[str, Path] = MappingProxyType({}),
    recipient: str = "",
    key: str = "",
    progress: ProgressReporter = lambda _: None,
) -> tuple[Path, BackupManifest]:
    """Write a backup as a new folder below *into*, and return it.

    *dagster* is the Postgres of Dagster's storage, or the folder of its files; *home* are other files and folders by
    name, which need not be there. If *recipient*, an age public key, is
    not empty, only the holder of the private key can read the rows; if *key* is not, only its holder can change them
    unnoticed. The folder appears complete or not at all, and only its owner can read it.

    Raises OutsideSystemError when a database or the disk is gone, ConfigurationError when the recipient is none.
    """
    require_recipient(recipient)
    moment = datetime.now(tz=UTC)
    folder = into / f"{moment:%Y-%m-%dT%H-%M-%S}Z"
    partial = into / f"{PARTIAL}{folder.name}"
    with disk_errors(str(partial)):
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.mkdir(mode=0o700)
    try:
        tables = _save(database.engine, TableOwner.PLATFORM, _KEPT_BY_MIGRATIONS, partial, recipient, progress)
        files = []
        if isinstance(dagster, Path):
            files = save_files(dagster, partial, recipient)
        else:
            tables += _save(dagster, TableOwner.DAGSTER, _OF_ALEMBIC, partial, recipient, progress)
        progress("files of the home")
        # after the database: a release that it records is in the folder
        of_home = save_home(home, partial, recipient)
        manifest = BackupManifest(
            made_at=moment,
            version=version("formulacode-dagster"),
            migrations=tuple(migration.name for migration in read_migrations()),
            encrypted=bool(recipient),
            tables=tuple(tables),
            files=tuple(files),
            home=tuple(of_home),
            home_paths=absolute_paths(home),
        )
        write_manifest(manifest, partial, key)
        with disk_errors(str(folder)):
            partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return folder, manifest


def restore(
    folder: Path,
    database: Database,
    dagster: Engine | Path,
    *,
    home: Mapping[str, Path] = MappingProxyType({}),
    identity: str = "",
    key: str = "",
    progress: ProgressReporter = lambda _: None,
) -> BackupManifest:
    """Restore the backup in *folder* into an empty *database*, migrated or not, and an empty storage of Dagster.

    *dagster* is of the same kind as in the backup, and *home* has the same names. *identity* is the private key of an
    encrypted backup, and *key* that of its MAC. Every file is verified before anything is written; a database gets all
    of its rows or none. Files of the home that are there with the same content stay.

    Raises ConfigurationError when the backup is not whole, the key is not its own, rows or other files are there, or
    a later platform made the backup.
    """
    manifest = read_manifest(folder, key)
    known = {migration.name: migration for migration in read_migrations()}
    if later := [name for name in manifest.migrations if name not in known]:
        raise ConfigurationError(
            f"{folder} was made by a later platform ({manifest.version})",
            why=f"its database has {', '.join(later)}",
            remedy="Restore it with that version, or one after it",
        )
    of_dagster = [table for table in manifest.tables if table.origin is TableOwner.DAGSTER]
    if isinstance(dagster, Path) == bool(of_dagster):
        raise ConfigurationError(
            f"{folder} holds Dagster's storage {'of a Postgres' if of_dagster else 'as files'}",
            remedy=f"{'Set' if of_dagster else 'Leave empty'} FC_DAGSTER_DATABASE_URL for the restore",
        )
    if isinstance(dagster, Path) and (there := sorted(dagster.rglob("*.db"))):
        raise ConfigurationError(f"{there[0]} is there already", remedy="Restore into an empty FC_HOME")
    targets = targets_of(manifest.home, home, folder, identity)
    _require_empty(database.engine, "FC_DATABASE_URL, or another FC_HOME")
    if not isinstance(dagster, Path):
        _require_empty(dagster, "FC_DAGSTER_DATABASE_URL")
    then = tuple(known[name] for name in manifest.migrations)
    rewind(database.engine, then, VIEWS)
    migrate(database.engine, then)
    platform = [table for table in manifest.tables if table.origin is TableOwner.PLATFORM]
    # tables of documents that no migration makes, only the views of their artifacts
    names = {table.table for table in platform}
    METADATA.create_all(database.engine, [table for table in METADATA.sorted_tables if table.name in names])
    load_tables(database.engine, platform, folder, identity, progress)
    # additions of this platform version to that of the backup
    database.migrate()
    with database.transaction() as connection:
        rename_destinations(connection, manifest.home_paths, absolute_paths(home))
    if isinstance(dagster, Path):
        for file in manifest.files:
            progress(file.path)
            load_file(file, folder, dagster, identity)
    else:
        load_tables(dagster, of_dagster, folder, identity, progress)
    progress("files of the home")
    load_home(targets, folder, identity)
    return manifest


def newest_backup(into: Path) -> datetime | None:
    """Return when the newest backup below *into* was made; None if there is none."""
    written = [path.stat().st_mtime for path in _manifests(into)]
    return datetime.fromtimestamp(max(written), UTC) if written else None


def _manifests(into: Path) -> list[Path]:
    """Return the creation times of all complete backups below *into*, oldest first."""
    return sorted(path for path in into.glob(f"*/{MANIFEST}") if not path.parent.name.startswith(PARTIAL))


def prune(into: Path, keep: int) -> tuple[Path, ...]:
    """Remove all but the newest *keep* backups below *into*, and incomplete ones; returns what was removed.

    A backup is incomplete if it has no manifest and nothing was written for a day: a younger one may be in progress.
    """
    folders = [path.parent for path in _manifests(into)]
    cut = (path for path in into.glob(f"{PARTIAL}*") if time.time() - path.stat().st_mtime > CUT_AFTER_SECONDS)
    gone = [*folders[: max(0, len(folders) - keep)], *cut]
    for folder in gone:
        shutil.rmtree(folder)
    return tuple(gone)


def _save(
    engine: Engine, origin: TableOwner, without: str, folder: Path, recipient: str, progress: ProgressReporter
) -> list[TableBackup]:
    saved: list[TableBackup] = []
    with snapshot(engine) as connection:
        for table in tables_of(connection):
            if table.name != without:
                progress(f"{origin} {table.name}")
                saved.append(save_table(connection, table, folder, origin, recipient))
    return saved


def _require_empty(engine: Engine, setting: str) -> None:
    with engine.connect() as connection:
        tables = [table for table in tables_of(connection) if table.name not in _OF_OPENING]
        filled = [table.name for table in tables if connection.execute(select(exists(select(table)))).scalar()]
    if filled:
        raise ConfigurationError(
            f"{engine.url.render_as_string(hide_password=True)} is not empty: {', '.join(filled[:3])} have rows",
            why="a restore would write over them",
            remedy=f"Restore into an empty database: set {setting}",
        )
