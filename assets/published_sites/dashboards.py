"""`dashboards`: published asv sites as complete tables, with their missing or broken parts listed."""

from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.operating.store.series.source import Source
from resources.dashboards import DashboardsResource
from resources.postgres import PostgresResource

from ..stage_asset import WITHIN_A_MONTH
from .dashboard_asset import DashboardCheck, JudgedDashboard, dashboard_asset, dashboard_run, site_metadata


@DashboardCheck
def complete(dashboard: JudgedDashboard) -> CheckFinding:
    """Every graph and summary of the index was read, or the site does not have it; every benchmark has a graph."""
    from formulacode_dagster.sources.dashboards import checks as verdicts

    return verdicts.complete(dashboard.site(Source.PUBLISHED))


@DashboardCheck
def in_order(dashboard: JudgedDashboard) -> CheckFinding:
    """Revisions are known, distinct and ascending in every graph, and dates follow them."""
    from formulacode_dagster.sources.dashboards import checks as verdicts

    return verdicts.in_order(dashboard.site(Source.PUBLISHED))


@dashboard_asset(
    kinds={"asv", "parquet"},
    description="One row is a dashboard as it was last read: a site that asv published, or raw results collated. Its "
    "commits, series, points, summaries, regressions and faults are in tables of their own, and in Parquet.",
    freshness=WITHIN_A_MONTH,
    checks=[complete, in_order],
)
def dashboards(
    context: dg.AssetExecutionContext, postgres: PostgresResource, boards: DashboardsResource
) -> dg.MaterializeResult[Any]:
    """Read the site of the dashboard, with rate limits on the network, and store all of its tables."""
    from formulacode_dagster.sources.dashboards.persistence import keep_site
    from formulacode_dagster.sources.dashboards.scraping import scrape

    with dashboard_run(context, boards) as dashboard:
        if not dashboard.site:
            return dg.MaterializeResult(metadata={"site": "none", "dagster/row_count": 0})
        folder = boards.folder(dashboard.name)
        scraped = scrape(dashboard.site, folder)
        keep_site(postgres.database(), dashboard, Source.PUBLISHED, scraped.site, folder, context.run.run_id)
    metadata = site_metadata(scraped.site, folder / Source.PUBLISHED)
    if scraped.download is not None:
        metadata["requests"] = scraped.download.requests
        metadata["files_fetched"] = scraped.download.fetched
        metadata["files_as_before"] = scraped.download.unchanged + scraped.download.kept
    return dg.MaterializeResult(metadata=metadata)
