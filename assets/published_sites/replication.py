"""`replication`: compares two sets of breakpoints of one repository."""

from typing import Any

import dagster as dg
from pydantic import Field

from formulacode_dagster.measuring.breakpoints.choices import WITHIN
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.releasing.reporting.pictures import in_markdown
from resources.dashboards import DashboardsResource
from resources.postgres import PostgresResource

from .breakpoints import breakpoints
from .dashboard_asset import DashboardCheck, JudgedDashboard, dashboard_asset, dashboard_run


class ReplicationConfig(dg.Config):
    """Input to compare with the published breakpoints of the dashboard."""

    other_dashboard: str = Field(default="", description="the dashboard of the second set; the same one if empty")
    other_source: str = Field(default=Source.RESULTS.value, description="`results` or `published`")
    within: int = Field(default=WITHIN, description="commits between two breakpoints that are the same all the same")


@DashboardCheck
def steps_agree_in_direction(dashboard: JudgedDashboard) -> CheckFinding:
    """Nine in ten of the steps in both sets have the same direction."""
    from formulacode_dagster.measuring.breakpoints.comparing import same_direction, stored_replications

    with dashboard.database.transaction() as connection:
        return same_direction(stored_replications(connection, dashboard.name))


@dashboard_asset(
    kinds={"polars", "parquet"},
    description="One row is two sets of breakpoints of a repository, by one method: common breakpoints, correlation of "
    "their steps, and differences.",
    deps=[breakpoints],
    checks=[steps_agree_in_direction],
)
def replication(
    context: dg.AssetExecutionContext, config: ReplicationConfig, postgres: PostgresResource, boards: DashboardsResource
) -> dg.MaterializeResult[Any]:
    """Compare the published breakpoints with those of raw results, or of another dashboard, by every method of both."""
    from formulacode_dagster.measuring.breakpoints.comparing import SetName, replicate_and_keep
    from formulacode_dagster.measuring.breakpoints.replication_picture import draw_replication

    with dashboard_run(context, boards) as dashboard:
        other = SetName(config.other_dashboard or dashboard.name, Source(config.other_source))
        compared = replicate_and_keep(
            postgres.database(),
            SetName(dashboard.name, Source.PUBLISHED),
            other,
            boards.folder(dashboard.name),
            config.within,
        )
    metadata: dict[str, Any] = {}
    for method, of in compared.items():
        metadata |= {
            f"{method}_{name}": value for name, value in of.row(method).items() if isinstance(value, int | float)
        }
        metadata[f"{method}_picture"] = dg.MetadataValue.md(in_markdown("replication", draw_replication(of)))
    return dg.MaterializeResult(metadata={"dagster/row_count": len(compared), **metadata})
