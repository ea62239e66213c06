"""Schedules for maintenance: a queued or running run makes the next one unnecessary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

_UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def one_at_a_time(
    name: str,
    job_name: str,
    cron: str,
    *,
    description: str,
    run_config: Mapping[str, Any] | None = None,
) -> dg.ScheduleDefinition:
    """A schedule, off until somebody switches it on, that launches a job by *cron*, in UTC, unless a run of it is left.

    Runs that wait for the same thing would fill the queue, in which months wait behind them.
    """

    def launch(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        left = context.instance.get_runs(dg.RunsFilter(job_name=job_name, statuses=_UNDER_WAY), limit=1)
        if left:
            return dg.SkipReason(f"run {left[0].run_id} of {job_name} is {left[0].status.value.lower()} still")
        return dg.RunRequest(run_config=run_config)

    return dg.ScheduleDefinition(
        name=name,
        job_name=job_name,
        cron_schedule=cron,
        execution_timezone="UTC",
        execution_fn=launch,
        description=description,
        default_status=dg.DefaultScheduleStatus.STOPPED,
    )
