"""A run whose next step waits for a pool sleeps meanwhile, and is not forgotten there.

Dagster's in-process executor asks for the time until the next retry and always gets none (1.13's `min([0, …])`): a
month that waits for another's measurements would keep a core busy next to them. And a step that queues just after the
slot's holder chose its successor is never called: Dagster assigns a slot as it becomes free, and never again.

For a shared stage, the leading run holds the slot for all: runs that join it need not wait.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import dagster as dg

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner.claims import shared_stage
from resources.database import open_database
from resources.settings import read_settings

from .dagster_internals import PARTITION_NAME_TAG, InstanceConcurrencyContext

MOST_SECONDS = 1.0
"""Seconds between two polls for other work."""

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
    """Return True if the step may begin; a free slot goes to the first in the queue."""
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
    """Return True if another running run shares the stage and month of the step."""
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
        # no reason to fail: the step waits, and reports the error in its turn
        return False
    leader = instance.get_run_by_id(shared.run_id) if shared else None
    return leader is not None and leader.run_id != run_id and not leader.is_finished
