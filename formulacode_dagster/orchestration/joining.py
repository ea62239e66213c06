"""Whether a step needs no place in its pool: the run that leads a stage has one for all that share it."""

from __future__ import annotations

from contextlib import closing

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from formulacode_dagster.items.claims import shared_stage
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import Stage
from resources.database import open_database
from resources.settings import read_settings


def joins(instance: dg.DagsterInstance, run_id: str, step_key: str) -> bool:
    """Whether the step is of a stage and a month that another run, which is under way, shares with it."""
    if not read_settings().helper_runs or step_key not in list(Stage):
        return False
    run = instance.get_run_by_id(run_id)
    month = run.tags.get(PARTITION_NAME_TAG) if run else None
    if month is None:
        return False
    try:
        with closing(open_database(migrated=False)) as database, database.transaction() as connection:
            shared = shared_stage(connection, Stage(step_key), month)
    except FormulaCodeError:
        # no reason to fail: the step waits, and is told of it when its turn comes
        return False
    leader = instance.get_run_by_id(shared.run_id) if shared else None
    return leader is not None and leader.run_id != run_id and not leader.is_finished
