"""Stages that are listed as shared though the run that led them is gone, and with it everybody who was at them."""

from __future__ import annotations

from formulacode_dagster.models.errors import BusyError
from formulacode_dagster.operating.runner.claims import SharedStage, close_deserted, shared_stages
from formulacode_dagster.operating.store.database import Database


def close_deserted_stages(database: Database, *, dry_run: bool) -> tuple[SharedStage, ...]:
    """Share no longer what no run leads and nobody is at; the next run of the month leads what is left to do.

    With *dry_run* it is told, and stays. Raises OutsideSystemError.
    """
    with database.transaction() as connection:
        shared = shared_stages(connection)
    return tuple(stage for stage in shared if _is_closed(database, stage, dry_run))


def _is_closed(database: Database, shared: SharedStage, dry_run: bool) -> bool:
    try:
        # who leads a stage holds its month
        with (
            database.month_lock(shared.stage, shared.month, "housekeeping"),
            database.transaction() as connection,
        ):
            return close_deserted(connection, shared, dry_run=dry_run)
    except BusyError:
        return False
