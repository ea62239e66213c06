"""Backups of the platform's database and of Dagster's storage: by a daily job, or by the command line."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.operating.backups.backup import back_up, prune
from formulacode_dagster.operating.backups.manifest import BackupManifest
from formulacode_dagster.operating.backups.object_store import SCHEME, ObjectStore
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.sources.dashboards.sites import OWN_SITES
from resources.postgres import PostgresResource
from resources.settings import DATASET, Settings, read_settings

from .maintenance_schedules import one_at_a_time


@contextmanager
def dagster_storage(settings: Settings) -> Iterator[Engine | Path]:
    """Dagster's own storage: the configured Postgres, else the folder below FC_HOME."""
    url = settings.dagster_database_url.get_secret_value()
    if not url:
        yield settings.home / "dagster"
        return
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    try:
        yield engine
    finally:
        engine.dispose()


def files_of_home(settings: Settings) -> dict[str, Path]:
    """Return the small files and folders of FC_HOME that no database has and nothing makes again, by name."""
    return {name: settings.home / name for name in (OWN_SITES, DATASET)}


def object_store(settings: Settings) -> ObjectStore | None:
    """Return the store for copies of backups; None if FC_BACKUP_STORE is empty. Raises ConfigurationError."""
    return ObjectStore.of(settings.backup_store, settings.backup_endpoint) if settings.backup_store else None


def back_up_all(
    database: Database, into: Path | None = None, *, progress: Callable[[str], None] = lambda _: None
) -> tuple[Path, BackupManifest]:
    """Back up as the settings say, below *into* or FC_BACKUP_DIR, and copy it to FC_BACKUP_STORE.

    Raises as `back_up`, and as `ObjectStore.upload`: then only the folder has the backup.
    """
    settings = read_settings()
    store = object_store(settings)
    with dagster_storage(settings) as dagster:
        folder, manifest = back_up(
            database,
            dagster,
            into or settings.backup_root,
            home=files_of_home(settings),
            recipient=settings.backup_recipient,
            key=settings.backup_key.get_secret_value(),
            progress=progress,
        )
    if store is not None:
        progress(f"uploading {store.upload(folder)}")
    return folder, manifest


@contextmanager
def folder_of(backup: str, endpoint: str) -> Iterator[Path]:
    """The folder of *backup*; one in a store is downloaded, for the length of the block. Raises as `download`."""
    if not backup.startswith(f"{SCHEME}://"):
        yield Path(backup)
        return
    where, _, name = backup.rstrip("/").rpartition("/")
    with tempfile.TemporaryDirectory() as scratch:
        yield ObjectStore.of(where, endpoint).download(name, Path(scratch))


@dg.op(
    description="Writes a backup below FC_BACKUP_DIR and to FC_BACKUP_STORE; keeps the newest FC_BACKUPS_KEPT of each."
)
def write_backup(context: dg.OpExecutionContext, postgres: PostgresResource) -> dg.Output[None]:
    """Back up; the output's metadata list the content."""
    settings = read_settings()
    try:
        try:
            folder, manifest = back_up_all(postgres.database(), progress=context.log.debug)
        finally:
            # a store that is down must not fill the disk
            gone = list(map(str, prune(settings.backup_root, settings.backups_kept)))
        if (store := object_store(settings)) is not None:
            gone += store.prune(settings.backups_kept)
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    tables = [
        dg.TableRecord({"table": table.table, "of": table.origin.value, "rows": table.rows, "bytes": table.bytes})
        for table in manifest.tables
    ]
    return dg.Output(
        None,
        metadata={
            "folder": dg.MetadataValue.path(folder),
            "rows": manifest.rows,
            "bytes": manifest.bytes,
            "encrypted": manifest.encrypted,
            "removed": len(gone),
            "tables": dg.MetadataValue.table(tables),
        },
    )


@dg.job(
    description="A backup of the platform's database and of Dagster's storage; `fc-data restore` takes it back.",
    executor_def=dg.in_process_executor,
)
def backup() -> None:
    """Back up."""
    write_backup()


BACKUP_SCHEDULE = one_at_a_time(
    "backup_daily",
    backup.name,
    "30 3 * * *",
    description="Every day at 03:30 UTC, into FC_BACKUP_DIR; the newest FC_BACKUPS_KEPT stay.",
)
