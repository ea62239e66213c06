"""Stages listed as shared although the run that led them is gone, along with all their workers."""

from __future__ import annotations

from formulacode_dagster.models.errors import BusyError
from formulacode_dagster.operating.runner.claims import SharedStage, close_deserted, shared_stages
from formulacode_dagster.operating.store.database import Database


def close_deserted_stages(database: Database, *, dry_run: bool) -> tuple[SharedStage, ...]:
    """Unshare stages without a leading run or workers; the next run of the month leads the remaining work.

    With *dry_run* it is reported, and stays. Raises OutsideSystemError.
    """
    with database.transaction() as connection:
        shared = shared_stages(connection)
    return tuple(stage for stage in shared if _is_closed(database, stage, dry_run))


def _is_closed(database: Database, shared: SharedStage, dry_run: bool) -> bool:
    try:
        # the leader of a stage holds its month
        with (
            database.month_lock(shared.stage, shared.month, "housekeeping"),
            database.transaction() as connection,
        ):
            return close_deserted(connection, shared, dry_run=dry_run)
    except BusyError:
        return False
