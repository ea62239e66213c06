"""`breakpoints`: the steps of a dashboard's series, and the commits that made them."""

from itertools import product
from typing import Any

import dagster as dg
from pydantic import Field

from formulacode_dagster.measuring.breakpoints.choices import MINIMUM_CHANGE, Method
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.releasing.reporting.pictures import in_markdown
from resources.dashboards import DashboardsResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .benchmark_results import benchmark_results
from .dashboard_asset import DashboardCheck, JudgedDashboard, dashboard_asset, dashboard_run
from .dashboards import dashboards


class BreakpointConfig(dg.Config):
    """Options of the step detection."""

    methods: list[str] = Field(
        default=[Method.SEEDED.value], description="seeded, asv, rbf; the last two need their libraries"
    )
    minimum_change: float = Field(default=MINIMUM_CHANGE, description="the smallest relative change to report")


@DashboardCheck
def own_regressions_are_found(dashboard: JudgedDashboard) -> CheckFinding:
    """Regressions that the site reports are reproduced by asv's own code, if the intervals of its values are known."""
    from formulacode_dagster.measuring.breakpoints.regressions import reproduces, with_intervals

    published, results = dashboard.site(Source.PUBLISHED), dashboard.site(Source.RESULTS)
    if published is None or results is None:
        return CheckFinding(
            passed=True, summary="no site, or no raw results: nothing has both regressions and intervals"
        )
    points = with_intervals(published.points, published.series, published.revisions, results.measured)
    return reproduces(published.regressions, points, published.series)


@dashboard_asset(
    kinds={"polars", "parquet"},
    description="One row is a step of a series: the level before, the level after, and the commits `before..after` "
    "among which one made it. `breakpoint_commits` merges them over all series.",
    deps=[dashboards, benchmark_results],
    checks=[own_regressions_are_found],
)
def breakpoints(
    context: dg.AssetExecutionContext,
    config: BreakpointConfig,
    postgres: PostgresResource,
    boards: DashboardsResource,
    mirrors: MirrorsResource,
) -> dg.MaterializeResult[Any]:
    """Find the steps of the published series and of those of raw results, by each of the methods."""
    from formulacode_dagster.measuring.breakpoints.attribution import MeasuredSeries, find_and_keep
    from formulacode_dagster.measuring.breakpoints.picture import draw_steps
    from formulacode_dagster.sources.dashboards.persistence import kept_sites

    metadata: dict[str, Any] = {}
    steps = 0
    with dashboard_run(context, boards) as dashboard:
        database, mirror = postgres.database(), mirrors.here(dashboard.repository)
        folder = boards.folder(dashboard.name)
        for (source, site), method in product(
            kept_sites(database, dashboard.name).items(), map(Method, config.methods)
        ):
            measured = MeasuredSeries(
                dashboard.name, source, dashboard.repository, site.points, site.series, site.revisions
            )
            of = find_and_keep(
                database, measured, folder, mirror=mirror, method=method, minimum_change=config.minimum_change
            )
            name = f"{source}_{method}"
            steps += of.steps.height
            metadata |= {
                f"{name}_steps": of.steps.height,
                f"{name}_commits": of.commits.height,
                f"{name}_commits_with_pull_request": of.commits["pull_request"].count(),
                f"{name}_picture": dg.MetadataValue.md(
                    in_markdown(name, draw_steps(site.points, site.series, of.steps))
                ),
            }
    return dg.MaterializeResult(metadata={"dagster/row_count": steps, **metadata})
