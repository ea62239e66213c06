"""Partitions of the dashboards follow the list of them."""

from __future__ import annotations

import dagster as dg

from assets.published_sites.dashboard_asset import DASHBOARDS
from formulacode_dagster.models.errors import FormulaCodeError
from resources.dashboards import DashboardsResource

SECONDS = 300


@dg.sensor(
    minimum_interval_seconds=SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds a partition for each new shipped dashboard and each one of `fc-data dashboards add`. None is "
    "removed: its materializations stay.",
)
def listed_dashboards(context: dg.SensorEvaluationContext, boards: DashboardsResource) -> dg.SensorResult:
    """The dashboards that have no partition yet get one."""
    try:
        names = boards.names()
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error)) from error
    fresh = sorted(set(names) - set(context.instance.get_dynamic_partitions(str(DASHBOARDS.name))))
    if not fresh:
        return dg.SensorResult(skip_reason=f"all {len(names)} dashboards have their partition")
    return dg.SensorResult(dynamic_partitions_requests=[DASHBOARDS.build_add_request(fresh)])
