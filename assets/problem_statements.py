"""`problem_statements`: the task text in its variants, and the issues behind it."""

from functools import partial
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import PROBLEM_STATEMENTS
from formulacode_dagster.operating.store.pull_requests import done_in, patch_of
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.selection.statements import checks as verdicts
from formulacode_dagster.selection.statements.stage import render_statements
from resources.intake import IntakeResource
from resources.llm import LLMResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .classifications import classifications
from .materialize import ItemConfig, report, stage_run, usage_metadata
from .partitions import MONTHS
from .stage_asset import stage_asset

WALKED = "references followed two steps, as they stood before the pull request was opened"
STORED = "the closing issues stored at intake: GitHub is not asked offline, nor without a token"


@month_check(blocking=True)
def nothing_leaks(month: JudgedMonth) -> Judgement:
    """No problem statement tells anything of its solution."""
    with month.database.transaction() as connection:
        by_key = {pr.key: pr for pr in done_in(connection, month.key, Stage.PROBLEM_STATEMENTS)}
        statements = PROBLEM_STATEMENTS.read_keys(connection, month.key, by_key)
        # patches are read one at a time
        return verdicts.nothing_leaks(
            (statement, by_key[key].facts, patch_of(connection, by_key[key])) for key, statement in statements.items()
        )


@stage_asset(
    Stage.PROBLEM_STATEMENTS,
    deps=[classifications],
    partitions_def=MONTHS,
    group_name="selection",
    kinds={"github", "jinja", "postgres"},
    description="One row is the text a solver is given, written without the pull request; people are anonymized.",
    columns=RELATIONS["problem_statements"].columns,
    pool="github",
    checks=[failures_within_budget, nothing_leaks],
)
def problem_statements(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    intake: IntakeResource,
    llm: LLMResource,
) -> dg.MaterializeResult[Any]:
    """Follow the references of every performance pull request once, and render its statement."""
    with stage_run(context, postgres, problem_statements, config) as run:
        links = intake.links(run.stage, run.month, run.run_id)
        completions = postgres.completions(reask=config.reask)
        models = partial(llm.statement_models, completions, run.month)
        rendered = run_loop(render_statements(run, links, intake.cache(), models))
    return report(
        context,
        rendered.summary,
        issues_from=WALKED if links else STORED,
        pull_requests_walked=len(rendered.walks),
        linked_issues=sum(len(walk.links) for walk in rendered.walks),
        unreadable_links=sum(len(walk.unreadable) for walk in rendered.walks),
        **usage_metadata(run),
    )
