"""`problem_statements`: the task text in its variants, and the issues behind it."""

from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import PROBLEM_STATEMENTS
from formulacode_dagster.operating.store.pull_requests import done_in, patch_of
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.selection.statements import checks as verdicts
from formulacode_dagster.selection.statements.stage import StatementTools, run
from resources.llm import LLMResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .discussions import discussions
from .materialize import ModelConfig, report, stage_run
from .partitions import MONTHS
from .stage_asset import stage_asset


@month_check(blocking=True)
def nothing_leaks(month: JudgedMonth) -> CheckFinding:
    """No problem statement reveals anything of its solution."""
    with month.database.transaction() as connection:
        by_key = {pr.key: pr for pr in done_in(connection, month.key, Stage.PROBLEM_STATEMENTS)}
        statements = PROBLEM_STATEMENTS.read_keys(connection, month.key, by_key)
        # patches are read one at a time
        return verdicts.nothing_leaks(
            (statement, by_key[key].facts, patch_of(connection, by_key[key])) for key, statement in statements.items()
        )


@stage_asset(
    Stage.PROBLEM_STATEMENTS,
    deps=[discussions],
    partitions_def=MONTHS,
    group_name="selection",
    kinds={"jinja", "postgres"},
    description="One row is the text a solver is given, written without the pull request; people are anonymized.",
    columns=RELATIONS["problem_statements"].columns,
    pool="llm",
    checks=[failures_within_budget, nothing_leaks],
)
def problem_statements(
    context: dg.AssetExecutionContext,
    config: ModelConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    llm: LLMResource,
) -> dg.MaterializeResult[Any]:
    """Render the statement of every performance pull request from its discussion."""
    with stage_run(context, postgres, problem_statements, config) as stage:
        models = llm.statement_models(postgres.completions(reask=config.reask))
        summary = run_loop(run(stage, StatementTools(mirrors.cache(), models)))
    return report(context, summary)
