"""`classifications`: verdict, category, difficulty and reason for every candidate."""

from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import FIRST_MONTH, Month
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS
from formulacode_dagster.operating.store.evaluations import judges_of, last_evaluation, positives_by_month
from formulacode_dagster.operating.store.pull_requests import done_items, items_by_key
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.releasing.reporting.funnel import count_funnel
from formulacode_dagster.selection.classification import checks as verdicts
from formulacode_dagster.selection.classification.stage import run
from resources.llm import LLMResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ModelConfig, report, stage_run
from .partitions import MONTHS
from .pull_requests import pull_requests
from .stage_asset import stage_asset

HISTORY_MONTHS = 12
"""Number of earlier months in the control limits of `share_of_positives`."""


@month_check(blocking=True)
def every_candidate_has_verdict(month: JudgedMonth) -> CheckFinding:
    """Every pull request has a verdict, a rejection or a recorded failure."""
    with month.database.transaction() as connection:
        names = items_by_key(connection, month.key)
        taken_in = done_items(connection, month.key, Stage.PULL_REQUESTS)
    skipped = set(month.items(Stage.CLASSIFICATIONS, ItemState.SKIPPED))
    judged = [(row.repository_id, row.number) for row in month.rows(CLASSIFICATIONS)]
    return verdicts.every_candidate_has_verdict(
        candidates=[item for item in taken_in.values() if item not in skipped],
        classified=[names[key] for key in judged if key in names],
        failed=month.items(Stage.CLASSIFICATIONS, ItemState.FAILED),
        rejected=month.items(Stage.CLASSIFICATIONS, ItemState.REJECTED),
    )


@month_check(blocking=False)
def share_of_positives(month: JudgedMonth) -> CheckFinding:
    """The share of performance pull requests is within the control limits of earlier months."""
    months = [Month.parse(month.key)]
    while len(months) <= HISTORY_MONTHS and months[-1].key > FIRST_MONTH:
        months.append(months[-1].previous())
    with month.database.transaction() as connection:
        counted = positives_by_month(connection, [month_key.key for month_key in months])
    positives, candidates = counted.pop(month.key, (0, 0))
    return verdicts.share_of_positives(positives, candidates, list(counted.values()))


@month_check(blocking=False)
def accuracy_on_labelled_set(month: JudgedMonth) -> CheckFinding:
    """Accuracy of the month's model and prompt on labelled commits, as of the last `make eval-classifier`."""
    with month.database.transaction() as connection:
        judges = judges_of(connection, month.key)
        return verdicts.accuracy_on_labelled_set({judge: last_evaluation(connection, *judge) for judge in judges})


@stage_asset(
    Stage.CLASSIFICATIONS,
    deps=[pull_requests],
    partitions_def=MONTHS,
    group_name="selection",
    kinds={"openai", "postgres"},
    description="One row is a candidate that passed the symbolic filter and was judged by the model, whichever way.",
    columns=RELATIONS["classifications"].columns,
    pool="llm",
    checks=[failures_within_budget, every_candidate_has_verdict, share_of_positives, accuracy_on_labelled_set],
)
def classifications(
    context: dg.AssetExecutionContext, config: ModelConfig, postgres: PostgresResource, llm: LLMResource
) -> dg.MaterializeResult[Any]:
    """Screen every pull request, then ask the model about the candidates."""
    with stage_run(context, postgres, classifications, config) as stage:
        tools = llm.classification_tools(postgres.completions(reask=config.reask))
        summary = run_loop(run(stage, tools))
    return report(context, summary, candidates=count_funnel(stage.month, summary.standing).count("candidates"))
