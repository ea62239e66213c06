"""`repositories`: the tracked repositories as of the month, by GitHub id, renames followed."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import REPOSITORIES, SEARCH_GAPS
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.sources.github import checks as verdicts
from formulacode_dagster.sources.intake.repositories.stage import RepositoryTools, run
from formulacode_dagster.sources.intake.repositories.tracked import Exclusion, exclusions
from resources.intake import IntakeResource, TrackingResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run, usage_metadata
from .partitions import MONTHS
from .stage_asset import stage_asset


@month_check(blocking=True)
def not_empty(month: JudgedMonth) -> CheckFinding:
    """At least one repository is tracked, unless the run was asked for some items only."""
    found = verdicts.not_empty(month.rows(REPOSITORIES), set(month.items(Stage.REPOSITORIES, ItemState.DONE)))
    return found.model_copy(update={"passed": found.passed or month.is_part})


@month_check(blocking=False)
def every_repository_resolves(month: JudgedMonth) -> CheckFinding:
    """Every tracked repository still exists on GitHub, and is stored once."""
    rejected = set(month.items(Stage.REPOSITORIES, ItemState.REJECTED))
    return verdicts.every_repository_resolves(
        [row for row in month.rows(REPOSITORIES) if row.full_name not in rejected]
    )


@month_check(blocking=False)
def searches_complete(month: JudgedMonth) -> CheckFinding:
    """Every code search returned GitHub's count, with a tolerance of one file in a hundred."""
    return verdicts.searches_complete(month.rows(SEARCH_GAPS))


@stage_asset(
    Stage.REPOSITORIES,
    partitions_def=MONTHS,
    group_name="intake",
    kinds={"github", "postgres"},
    description="One row is a repository with an asv suite, or on the list, as of the month. The ledger lists which of "
    "them are tracked, and the reasons for the others.",
    columns=RELATIONS["repositories"].columns,
    pool="github",
    checks=[failures_within_budget, not_empty, every_repository_resolves, searches_complete],
)
def repositories(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    intake: IntakeResource,
    tracking: TrackingResource,
) -> dg.MaterializeResult[Any]:
    """Find repositories by code search and those on the list by name, then decide which of them are tracked."""
    with stage_run(context, postgres, repositories, config, source=intake) as stage:
        source = intake.source(stage.stage, stage.month, stage.run_id)
        found_elsewhere = (intake.candidates(), intake.as_before) if not intake.state() else ({}, False)
        tools = RepositoryTools(source, tracking.rules(), intake.state(), intake.settings.github, *found_elsewhere)
        summary = run_loop(run(stage, tools))
        with stage.database.transaction() as connection:
            rows = REPOSITORIES.read(connection, stage.month)
    requests = summary.cost.api_requests
    return report(
        context,
        summary,
        rows=len(rows),
        tracked=summary.count(ItemState.DONE),
        not_tracked=_table(exclusions(summary.standing, rows)),
        **usage_metadata(stage),
        **({"requests_per_100_repositories": round(100 * requests / len(rows), 1)} if requests and rows else {}),
    )


def _table(reasons: Sequence[Exclusion]) -> dg.TableMetadataValue:
    schema = dg.TableSchema(
        [dg.TableColumn("reason"), dg.TableColumn("repositories", "int"), dg.TableColumn("such as")]
    )
    records = [
        dg.TableRecord({"reason": why.reason, "repositories": why.count, "such as": "; ".join(why.examples)})
        for why in reasons
    ]
    return dg.MetadataValue.table(records, schema)
