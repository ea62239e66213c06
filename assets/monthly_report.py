"""`monthly_report`: the funnel, costs, charts, changes since last month."""

from typing import Any

import dagster as dg

from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.reporting.charts import draw_charts
from formulacode_dagster.releasing.reporting.facts import month_facts
from formulacode_dagster.releasing.reporting.html import write_report
from formulacode_dagster.releasing.reporting.pictures import in_markdown
from resources.folders import ReportsResource
from resources.hub import HubResource
from resources.postgres import PostgresResource

from .materialize import ItemConfig, stage_run
from .partitions import MONTHS
from .published_dataset import published_dataset
from .stage_asset import MONTHLY, stage_asset


@stage_asset(
    Stage.MONTHLY_REPORT,
    deps=[published_dataset],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"html", "matplotlib"},
    description="One HTML file: the funnel as a picture, speed-ups, reasons for loss, costs, changes since last month.",
    freshness=MONTHLY,
)
def monthly_report(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    reports: ReportsResource,
    hub: HubResource,
) -> dg.MaterializeResult[Any]:
    """Write the report of the month, and record its figures for Dagster's plots."""
    with stage_run(context, postgres, monthly_report, config) as run:
        month, destination = Month.parse(run.month), hub.destination().name
        with run.database.transaction() as connection:
            facts = month_facts(connection, month, destination)
            before = month_facts(connection, month.previous(), destination)
        if config.dry_run:
            return dg.MaterializeResult(metadata={"dry_run": True})
        charts = draw_charts(facts)
        path = write_report(reports.folder(), facts, before)
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(str(path)),
            "dagster/uri": path.absolute().as_uri(),
            "funnel": dg.MetadataValue.md(in_markdown("funnel", charts.funnel)),
            "speedups": dg.MetadataValue.md(in_markdown("speed-ups", charts.speedups)),
            **{f"funnel_{step.name}": step.count for step in facts.funnel.steps},
            **{f"cost_{name}": round(value, 2) for name, value in facts.cost.model_dump().items()},
        }
    )
