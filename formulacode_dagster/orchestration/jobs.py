"""Jobs, schedules and sensors. No assets here, and no configuration of outside systems."""

from __future__ import annotations

import dagster as dg

from assets.published_sites.dashboard_asset import DASHBOARDS, GROUP
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import MONTH_STAGES, Stage
from resources.dashboards import DashboardsResource

from .alerts import checks_of_succeeded_runs, failed_runs, late_months
from .backups import BACKUP_SCHEDULE, backup
from .helpers import helper, helpers_sensor
from .housekeeping import HOUSEKEEPING_SCHEDULE, housekeeping
from .operations import OPERATIONS_SCHEDULE
from .placement import MONTH_TAGS, run_tags

LISTING_SECONDS = 300


@dg.sensor(
    minimum_interval_seconds=LISTING_SECONDS,
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


MONTH_JOB = dg.define_asset_job(
    "month",
    selection=dg.AssetSelection.assets(*(stage.value for stage in MONTH_STAGES)),
    tags=MONTH_TAGS,
    description="The whole month: from repositories to the report, with every gate on the way.",
)

STAGE_JOBS = [
    dg.define_asset_job(
        f"{stage.value}_only",
        selection=dg.AssetSelection.assets(stage.value),
        tags=run_tags(stage),
        description=f"`{stage.value}` alone, with its checks; for debugging a month, or an item with `only`.",
    )
    for stage in Stage
]

DASHBOARD_JOB = dg.define_asset_job(
    "dashboard",
    selection=dg.AssetSelection.groups(GROUP),
    description="A whole dashboard: its site, raw results, breakpoints, and their comparison.",
)

MONTHLY_SCHEDULE = dg.build_schedule_from_partitioned_job(
    MONTH_JOB,
    name="monthly",
    description="On day 25 at 02:00 UTC, the month before: late enough for reverts, early enough for the release.",
    day_of_month=25,
    hour_of_day=2,
    minute_of_hour=0,
    default_status=dg.DefaultScheduleStatus.STOPPED,
)

HOUSEKEEPING_JOB = housekeeping
HELPER_JOB = helper
BACKUP_JOB = backup
SENSORS = (helpers_sensor, listed_dashboards, failed_runs, checks_of_succeeded_runs, late_months)
SCHEDULES = (MONTHLY_SCHEDULE, HOUSEKEEPING_SCHEDULE, BACKUP_SCHEDULE, OPERATIONS_SCHEDULE)
