"""A run whose next step waits for a pool sleeps meanwhile, and is not forgotten there.

Dagster's executor of one process asks how long it may sleep until it tries again, and is always told not at all (1.13's
`min([0, …])`): a month that waits for another one's measurements would keep a core busy beside them. And a step that
queues just after the pool's holder looked for whom to call next is called by nobody: Dagster gives out a slot as it
becomes free, and never again.

Where a stage is shared, the run that leads it has the slot for all of them: whoever joins it need not wait.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import dagster as dg

# there is no public way to the wait of an executor
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.storage.tags import PARTITION_NAME_TAG

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner.claims import shared_stage
from resources.database import open_database
from resources.settings import read_settings

MOST_SECONDS = 1.0
"""Between two looks at what else there is to do."""

_CLAIM = InstanceConcurrencyContext.claim


def mend_waiting_for_pools() -> None:
    """Have runs of this process sleep while their next step waits for a pool, take slots that stayed free, and join."""
    amended: Any = InstanceConcurrencyContext
    amended.interval_to_next_pending_claim_check = _seconds_to_next_claim
    amended.claim = _claim


def _seconds_to_next_claim(context: InstanceConcurrencyContext) -> float:
    next_at: float = min(context._pending_timeouts.values(), default=0.0)
    return min(MOST_SECONDS, max(0.0, next_at - time.time()))


def _claim(context: InstanceConcurrencyContext, concurrency_key: str, step_key: str, step_priority: int = 0) -> bool:
    """Whether the step may begin; a slot that is free goes to whoever is first in the queue."""
    if _CLAIM(context, concurrency_key, step_key, step_priority):
        return True
    storage: Any = context._instance.event_log_storage
    if _joins(context._instance, context._run_id, step_key):
        # it would be called later, and hold a slot that it does not need
        storage.free_concurrency_slot_for_step(context._run_id, step_key)
        context._pending_claims.discard(step_key)
        context._pending_timeouts.pop(step_key, None)
        return True
    if storage.has_unassigned_slots(concurrency_key):
        storage.assign_pending_steps([concurrency_key])
    return False


def _joins(instance: dg.DagsterInstance, run_id: str, step_key: str) -> bool:
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
