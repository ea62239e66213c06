"""Runs of the command line whose process was killed.

Dagster would show them as running, and keep their slots in the pools, for ever: the next run would wait for a slot.
"""

from __future__ import annotations

import dagster as dg

from formulacode_dagster.engines.owner import Owner

PROCESS = "formulacode/process"
"""Tag of a run: the process it lives in."""

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def process_tag() -> dict[str, str]:
    """The tag that lets `end_orphans` find a run of this process once the process is gone."""
    return {PROCESS: Owner.current("").model_dump_json()}


def end_orphans(instance: dg.DagsterInstance) -> tuple[str, ...]:
    """Mark runs whose process is surely gone as failed, give back their slots in the pools, and return their ids."""
    ended: list[str] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        owner = Owner.parse(run.tags[PROCESS]) if PROCESS in run.tags else None
        if owner is None or not owner.is_dead():
            continue
        instance.report_run_failed(run, "its process was killed; the next run goes on where it was")
        ended.append(run.run_id)
    for run_id in ended:
        instance.event_log_storage.free_concurrency_slots_for_run(run_id)
    return tuple(ended)
