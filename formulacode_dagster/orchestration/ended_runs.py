"""Which runs are over, for what they may have left on machines where nobody sees their processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache

import dagster as dg

from formulacode_dagster.operating.runner.claims import working_runs
from formulacode_dagster.operating.store.database import Database

LONG_OVER = timedelta(hours=1)
"""Dagster may call a run failed that it has lost sight of; what such a run is at ends sooner than this, or tells so."""


def runs_over(instance: dg.DagsterInstance, database: Database, *, now: datetime) -> Callable[[str], bool]:
    """Tells of a run's id whether it ended an hour before *now*, and no worker of it renews its lease on an item.

    Of a run that Dagster does not know nothing is known. Raises OutsideSystemError.
    """
    with database.transaction() as connection:
        working = working_runs(connection)

    @cache
    def is_over(run_id: str) -> bool:
        if run_id in working:
            return False
        records = instance.get_run_records(dg.RunsFilter(run_ids=[run_id]), limit=1)
        return any(
            record.dagster_run.is_finished
            and record.end_time is not None
            and record.end_time <= (now - LONG_OVER).timestamp()
            for record in records
        )

    return is_over
