"""Determines which runs are over, for their leftovers on other machines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache

import dagster as dg

from formulacode_dagster.operating.runner.claims import working_runs
from formulacode_dagster.operating.store.database import Database

LONG_OVER = timedelta(hours=1)
"""Dagster may mark a run as failed that it lost sight of; its work ends sooner than this, or renews a lease."""


def runs_over(instance: dg.DagsterInstance, database: Database, *, now: datetime) -> Callable[[str], bool]:
    """Return a function: did a run, by id, end an hour before *now*, with no worker that renews its lease on an item?

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
