"""`environments`: interpreter, suite, pinned and hashed lock, omissions and their reasons."""

from typing import Any

import dagster as dg

from formulacode_dagster.building.environments import checks as verdicts
from formulacode_dagster.building.environments.stage import run
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS
from formulacode_dagster.operating.store.views import RELATIONS
from resources.agents import AgentsResource
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource
from resources.tools import environment_tools

from .checks import JudgedMonth, failures_within_budget, month_check
from .classifications import classifications
from .materialize import AgentConfig, report, stage_run
from .partitions import MONTHS
from .stage_asset import stage_asset


@month_check(blocking=True)
def every_lock_is_hashed(month: JudgedMonth) -> CheckFinding:
    """Every requirement of every lock is pinned and hashed."""
    return verdicts.every_lock_is_hashed(month.done_rows(ENVIRONMENTS, Stage.ENVIRONMENTS))


@month_check(blocking=True)
def interpreter_is_declared(month: JudgedMonth) -> CheckFinding:
    """Every interpreter is one the repository declares."""
    return verdicts.interpreter_is_declared(month.done_rows(ENVIRONMENTS, Stage.ENVIRONMENTS))


@stage_asset(
    Stage.ENVIRONMENTS,
    deps=[classifications],
    partitions_def=MONTHS,
    group_name="build",
    kinds={"uv", "git", "postgres"},
    description="One row is the pinned environment of one task: a declared interpreter and a hashed lock of its date.",
    columns=RELATIONS["environments"].columns,
    pool="build",
    is_shared=True,
    checks=[failures_within_budget, every_lock_is_hashed, interpreter_is_declared],
)
def environments(
    context: dg.AssetExecutionContext,
    config: AgentConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    agents: AgentsResource,
) -> dg.MaterializeResult[Any]:
    """Plan and lock the environment of every performance pull request."""
    with stage_run(context, postgres, environments, config) as stage:
        summary = run_loop(run(stage, environment_tools(stage, mirrors, containers, agents.authors(stage))))
    return report(context, summary)
