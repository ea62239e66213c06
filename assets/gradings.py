"""`gradings`: published tasks probed through their exported grader."""

from collections import Counter
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.grading import GradingProbe
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import PUBLISHED_IMAGES
from formulacode_dagster.operating.store.measurements import newest_gradings
from formulacode_dagster.operating.store.pull_requests import done_items
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.releasing.gradings import checks as verdicts
from formulacode_dagster.releasing.gradings.stage import run
from resources.containers import ContainersResource
from resources.postgres import PostgresResource
from resources.registry import RegistryResource
from resources.sampling import SamplingResource
from resources.tools import grading_tools

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run
from .measurements import measurements
from .partitions import MONTHS
from .problem_statements import problem_statements
from .published_images import published_images
from .stage_asset import stage_asset


@month_check(blocking=True)
def probes_get_nothing(month: JudgedMonth) -> CheckFinding:
    """The exported grader gives the author's patch of every task its reward, and no probe gets any."""
    with month.database.transaction() as connection:
        gradings = newest_gradings(connection, month.key)
        gradable = done_items(connection, month.key, Stage.GRADINGS)
    published = month.done_rows(PUBLISHED_IMAGES, Stage.PUBLISHED_IMAGES)
    return verdicts.probes_get_nothing(gradings, gradable, published)


@stage_asset(
    Stage.GRADINGS,
    deps=[problem_statements, measurements, published_images],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"docker", "postgres"},
    description="One row is a task probed through its exported grader: the author's patch must get its reward, and "
    "patches without an effect must get none. Other tasks are not released.",
    columns=RELATIONS["gradings"].columns,
    pool="measure",
    checks=[failures_within_budget, probes_get_nothing],
)
def gradings(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    containers: ContainersResource,
    registry: RegistryResource,
    sampling: SamplingResource,
) -> dg.MaterializeResult[Any]:
    """Probe every published task; skip, with the reason, those without a published image."""
    with stage_run(context, postgres, gradings, config) as stage:
        summary = run_loop(run(stage, grading_tools(stage, containers, registry, sampling)))
        with stage.database.transaction() as connection:
            newest = newest_gradings(connection, stage.month).values()
    graded = Counter(result.probe for grading in newest for result in grading.results)
    rewarded = Counter(result.probe for grading in newest for result in grading.rewarded)
    figures = {
        f"probe_{probe}": f"{rewarded[probe]} of {graded[probe]} rewarded" for probe in GradingProbe if graded[probe]
    }
    cpu_seconds = round(sum(result.cpu_seconds for grading in newest for result in grading.results), 1)
    return report(context, summary, rows=len(newest), cpu_seconds=cpu_seconds, **figures)
