"""Reports of a run that waits for a slot of a pool: Dagster's in-process executor waits in silence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from formulacode_dagster.models.base import ProgressReporter

SECONDS = 30.0
PARTITION = "dagster/partition"


@contextmanager
def reporting_pool_waits(
    instance: dg.DagsterInstance, run_id: str, say: ProgressReporter, seconds: float = SECONDS
) -> Iterator[None]:
    """Every *seconds*, say for which pool steps of *run_id* wait, and which runs hold it."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(seconds):
            # a busy SQLite answers next time
            with suppress(SQLAlchemyError):
                for text in pool_waits(instance, run_id):
                    say(text)

    thread = threading.Thread(target=watch, name="pool waits", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(seconds)


def pool_waits(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """Return a line for each step of *run_id* that waits for a pool."""
    found = []
    for pool in sorted(instance.event_log_storage.get_concurrency_keys()):
        info = instance.event_log_storage.get_concurrency_info(pool)
        holders = ", ".join(_named(instance, holder) for holder in sorted(info.active_run_ids - {run_id}))
        found += [
            f"{step.step_key} waits for the pool {pool}{f', held by {holders}' if holders else ''}"
            for step in info.pending_steps
            if step.run_id == run_id and step.assigned_timestamp is None
        ]
    return found


def _named(instance: dg.DagsterInstance, run_id: str) -> str:
    run = instance.get_run_by_id(run_id)
    month = run.tags.get(PARTITION) if run else None
    return f"run {run_id}{f' of {month}' if month else ''}"
