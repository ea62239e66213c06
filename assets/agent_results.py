"""`agent_results`: what agents achieve on a release, from their stored runs."""

from typing import Any

import dagster as dg

from formulacode_dagster.models.agent_run import AgentRun
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import AGENT_RESULTS, AGENT_RUNS
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.releasing.reporting.pictures import in_markdown
from formulacode_dagster.releasing.results import checks as verdicts
from formulacode_dagster.releasing.results.pictures import cost_picture, score_picture
from formulacode_dagster.releasing.results.stage import AgentResultTools, run
from formulacode_dagster.releasing.results.task_facts import of_release
from resources.hub import HubResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run
from .partitions import MONTHS
from .published_dataset import published_dataset
from .stage_asset import stage_asset


@month_check(blocking=True)
def runs_belong_to_the_release(month: JudgedMonth, hub: HubResource) -> CheckFinding:
    """The sums have only runs on tasks of the newest release of the month, with the same image and statement."""
    return verdicts.runs_belong_to_the_release(
        month.rows(AGENT_RUNS), _runs_of_the_release(month, hub), month.rows(AGENT_RESULTS)
    )


@month_check(blocking=True)
def no_infrastructure_failure_counts(month: JudgedMonth, hub: HubResource) -> CheckFinding:
    """No run without a judgement has a reward, and the sums have exactly the runs that were judged."""
    return verdicts.no_infrastructure_failure_counts(_runs_of_the_release(month, hub), month.rows(AGENT_RESULTS))


@month_check(blocking=False)
def oracle_is_at_the_top(month: JudgedMonth, hub: HubResource) -> CheckFinding:
    """The author's patch gets its reward on every task it was run on, and no agent is surely better."""
    return verdicts.oracle_is_at_the_top(_runs_of_the_release(month, hub))


@month_check(blocking=False)
def regrades_agree(month: JudgedMonth, hub: HubResource) -> CheckFinding:
    """Runs that were graded again get nearly the same reward."""
    return verdicts.regrades_agree(_runs_of_the_release(month, hub))


def _runs_of_the_release(month: JudgedMonth, hub: HubResource) -> list[AgentRun]:
    rows = hub.released(Month.parse(month.key)).frame.iter_rows(named=True)
    return of_release(month.rows(AGENT_RUNS), rows)


@stage_asset(
    Stage.AGENT_RESULTS,
    after=[published_dataset],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"postgres"},
    description="One row is an agent, with its version and model: what it achieves on the tasks of the release.",
    columns=RELATIONS["agent_results"].columns,
    checks=[
        failures_within_budget,
        runs_belong_to_the_release,
        no_infrastructure_failure_counts,
        oracle_is_at_the_top,
        regrades_agree,
    ],
)
def agent_results(
    context: dg.AssetExecutionContext, config: ItemConfig, postgres: PostgresResource, hub: HubResource
) -> dg.MaterializeResult[Any]:
    """Sum the runs that `fc-data results take` stored; a separate job, since runs come after the release."""
    with stage_run(context, postgres, agent_results, config) as stage:
        released = hub.released(Month.parse(stage.month))
        summary = run_loop(run(stage, AgentResultTools(released, hub.cutoffs())))
        with stage.database.transaction() as connection:
            rows = AGENT_RESULTS.read(connection, stage.month)
    ranked = sorted((row for row in rows if row.score), key=lambda row: -row.score.value if row.score else 0.0)
    lines = [
        f"| {row.contestant} | {row.score.value:.3f} | {row.score.low:.3f} to {row.score.high:.3f} "
        f"| {row.tasks} of {row.release_tasks} | {row.runs} | {row.infrastructure} |"
        for row in ranked
        if row.score
    ]
    heading = ["| agent | score | 95 % | tasks | runs | infrastructure |", "|---|---|---|---|---|---|"]
    drawn = {"scores": score_picture(ranked), "scores_by_cost": cost_picture(ranked)} if ranked else {}
    pictures = {name: dg.MetadataValue.md(in_markdown(name, png)) for name, png in drawn.items() if png}
    return report(
        context,
        summary,
        rows=len(rows),
        release=released.tag,
        runs=sum(row.runs for row in rows),
        infrastructure_failures=sum(row.infrastructure for row in rows),
        table=dg.MetadataValue.md("\n".join([*heading, *lines]) if lines else "no run was taken"),
        **pictures,
    )
