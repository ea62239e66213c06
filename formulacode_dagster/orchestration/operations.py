"""The asset `operations`: the state of the platform, sampled regularly for Dagster's plots."""

from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from assets.stage_asset import OWNER
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.operating.monitoring.operations import Operations, RunCounts, amount, draw
from formulacode_dagster.releasing.reporting.pictures import in_markdown
from resources.postgres import PostgresResource
from resources.watching import operations_now

from .maintenance_schedules import one_at_a_time

_WAITING = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED]
_UNDER_WAY = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def runs_now(instance: dg.DagsterInstance) -> RunCounts:
    """Number of runs queued, in progress, and failed within a day."""
    yesterday = datetime.now(tz=UTC) - timedelta(days=1)
    failed = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=yesterday)
    return RunCounts(
        queued=instance.get_runs_count(dg.RunsFilter(statuses=_WAITING)),
        under_way=instance.get_runs_count(dg.RunsFilter(statuses=_UNDER_WAY)),
        failed=instance.get_runs_count(failed),
    )


@dg.asset(
    group_name="operations",
    kinds={"table"},
    owners=[OWNER],
    description="Work that waits, spending against budgets, disks, mirrors and backups, as of now; kept as metadata.",
)
def operations(context: dg.AssetExecutionContext, postgres: PostgresResource) -> dg.MaterializeResult[Any]:
    """Look, and say so."""
    try:
        now = operations_now(postgres.database(), runs_now(context.instance))
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    return dg.MaterializeResult(metadata=_metadata(now))


def _metadata(now: Operations) -> dict[str, Any]:
    uses = [
        dg.TableRecord(
            {
                "what": use.what,
                "used": amount(use.used, use.unit),
                "limit": "none" if use.limit is None else amount(use.limit, use.unit),
            }
        )
        for use in (*now.budgets, *now.disks)
    ]
    dollars = sum(use.used for use in now.budgets if use.unit == "dollars")
    return {
        "limits": dg.MetadataValue.md(in_markdown("limits", draw((*now.budgets, *now.disks)))),
        "uses": dg.MetadataValue.table(uses),
        "runs_queued": now.runs.queued,
        "runs_under_way": now.runs.under_way,
        "runs_failed_within_a_day": now.runs.failed,
        "items_free": sum(queue.free for queue in now.queues),
        "items_failed": now.items["failed"],
        "dollars": round(dollars, 2),
        **{f"bytes_{use.what.split()[0]}": int(use.used) for use in now.disks},
        "mirrors": now.mirrors,
        **({} if now.mirrors_unused_days is None else {"mirrors_unused_days": round(now.mirrors_unused_days, 1)}),
        **({} if now.backup_hours is None else {"backup_hours": round(now.backup_hours, 1)}),
    }


OPERATIONS_JOB = dg.define_asset_job(
    "look_at_operations",
    selection=dg.AssetSelection.assets("operations"),
    description="Only `operations`: current pending work, spending, and free disk space.",
)

OPERATIONS_SCHEDULE = one_at_a_time(
    "operations_hourly",
    OPERATIONS_JOB.name,
    "15 * * * *",
    description="Every hour, so that the asset's page plots runs, spending and disks over time.",
)
