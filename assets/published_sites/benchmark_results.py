"""`benchmark_results`: raw results of asv, collated into the tables of a dashboard and into a site."""

from pathlib import Path
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.operating.store.series.source import Source
from resources.dashboards import DashboardsResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .dashboard_asset import DashboardCheck, JudgedDashboard, dashboard_asset, dashboard_run, site_metadata
from .dashboards import dashboards


@DashboardCheck
def every_result_counts(dashboard: JudgedDashboard) -> CheckFinding:
    """Every file of raw results was read, is of a commit of the history, and of benchmarks in their current version."""
    from formulacode_dagster.sources.dashboards import checks as verdicts

    return verdicts.every_file_read(dashboard.site(Source.RESULTS))


@dashboard_asset(
    kinds={"asv", "parquet"},
    description="One row is a value of a benchmark with its parameters in an environment at a commit, with its 99 % "
    "interval if raw results have it; published values are in the next columns.",
    deps=[dashboards],
    checks=[every_result_counts],
)
def benchmark_results(
    context: dg.AssetExecutionContext,
    postgres: PostgresResource,
    boards: DashboardsResource,
    mirrors: MirrorsResource,
) -> dg.MaterializeResult[Any]:
    """Collate the raw results of the dashboard, in the order of the mirror's history, else of the published site's."""
    from formulacode_dagster.sources.dashboards.persistence import keep_site, kept_site
    from formulacode_dagster.sources.dashboards.raw_results import collate_folder

    with dashboard_run(context, boards) as dashboard:
        if not Path(dashboard.results).is_dir():
            return dg.MaterializeResult(metadata={"results": f"none in {dashboard.results}", "dagster/row_count": 0})
        folder, database = boards.folder(dashboard.name) / Source.RESULTS, postgres.database()
        collated = collate_folder(
            dashboard,
            folder / "site",
            mirror=mirrors.here(dashboard.repository),
            published=kept_site(database, dashboard.name, Source.PUBLISHED),
        )
        keep_site(database, dashboard, Source.RESULTS, collated.site, folder.parent, context.run.run_id)
    return dg.MaterializeResult(
        metadata={
            **site_metadata(collated.site, folder),
            "order": collated.order.value,
            "site": dg.MetadataValue.path(str(folder / "site")),
        }
    )
