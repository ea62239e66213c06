"""`discussions`: issues, comments and references behind every performance pull request."""

from typing import Any

import dagster as dg

from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import DISCUSSIONS
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.selection.discussions.stage import DiscussionTools, run
from resources.intake import IntakeResource
from resources.postgres import PostgresResource

from .checks import failures_within_budget
from .classifications import classifications
from .materialize import ItemConfig, report, stage_run, usage_metadata
from .partitions import MONTHS
from .stage_asset import stage_asset

WALKED = "references followed two steps, as they stood before the pull request was opened"
STORED = "the closing issues stored at intake: GitHub is not asked offline, nor without a token"


@stage_asset(
    Stage.DISCUSSIONS,
    deps=[classifications],
    partitions_def=MONTHS,
    group_name="selection",
    kinds={"github", "postgres"},
    description="One row is the discussion behind a performance pull request, as it stood before the merge.",
    columns=RELATIONS["discussions"].columns,
    pool="github",
    checks=[failures_within_budget],
)
def discussions(
    context: dg.AssetExecutionContext, config: ItemConfig, postgres: PostgresResource, intake: IntakeResource
) -> dg.MaterializeResult[Any]:
    """Follow the references of every performance pull request once."""
    with stage_run(context, postgres, discussions, config) as stage:
        links = intake.links(stage.stage, stage.month, stage.run_id)
        summary = run_loop(run(stage, DiscussionTools(links)))
        with stage.database.transaction() as connection:
            walks = [row.walk for row in DISCUSSIONS.read(connection, stage.month) if row.walk]
    return report(
        context,
        summary,
        issues_from=WALKED if links else STORED,
        pull_requests_walked=len(walks),
        linked_issues=sum(len(walk.links) for walk in walks),
        unreadable_links=sum(len(walk.unreadable) for walk in walks),
        **usage_metadata(stage),
    )
