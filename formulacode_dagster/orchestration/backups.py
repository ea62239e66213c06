"""Backups of the platform's database and of Dagster's storage: by a daily job, or by the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url

from formulacode_dagster.backups.backup import back_up, prune
from formulacode_dagster.backups.manifest import Manifest
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.store.database import Database
from resources.postgres import PostgresResource
from resources.settings import Settings, read_settings


@contextmanager
def dagster_storage(settings: Settings) -> Iterator[Engine | Path]:
    """Where Dagster keeps what it knows: the Postgres that is set, else the folder below FC_HOME."""
    url = settings.dagster_database_url.get_secret_value()
    if not url:
        yield settings.home / "dagster"
        return
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    try:
        yield engine
    finally:
        engine.dispose()


def back_up_all(
    database: Database, into: Path | None = None, *, progress: Callable[[str], None] = lambda _: None
) -> tuple[Path, Manifest]:
    """Back up as the settings say, below *into* or FC_BACKUP_DIR; raises as `back_up`."""
    settings = read_settings()
    folder = into or settings.backup_dir or settings.home / "backups"
    with dagster_storage(settings) as dagster:
        return back_up(database, dagster, folder, recipient=settings.backup_recipient, progress=progress)


@dg.op(description="Writes a backup below FC_BACKUP_DIR, and removes all but the newest FC_BACKUPS_KEPT.")
def write_backup(context: dg.OpExecutionContext, postgres: PostgresResource) -> dg.Output[None]:
    """Back up; the metadata of the output tell what is in it."""
    try:
        folder, manifest = back_up_all(postgres.database(), progress=context.log.debug)
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    gone = prune(folder.parent, read_settings().backups_kept)
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


BACKUP_SCHEDULE = dg.ScheduleDefinition(
    name="backup_daily",
    job=backup,
    cron_schedule="30 3 * * *",
    execution_timezone="UTC",
    description="Every day at 03:30 UTC, into FC_BACKUP_DIR; the newest FC_BACKUPS_KEPT stay.",
    default_status=dg.DefaultScheduleStatus.STOPPED,
)
