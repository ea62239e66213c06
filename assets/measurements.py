"""`measurements`: samples of every relevant benchmark: base, oracle, and the base once more as control."""

from collections import Counter
from typing import Any

import dagster as dg

from formulacode_dagster.measuring.correctness import checks as correctness
from formulacode_dagster.measuring.measurement import checks as verdicts
from formulacode_dagster.measuring.measurement.stage import run
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.measurement import Verdict
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import CORRECTNESS, MEASUREMENTS
from formulacode_dagster.operating.store.views import RELATIONS
from resources.containers import ContainersResource
from resources.llm import LLMResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource
from resources.sampling import SamplingResource
from resources.tools import measurement_tools

from .checks import JudgedMonth, failures_within_budget, month_check
from .discussions import discussions
from .images import images
from .materialize import MeasurementConfig, report, stage_run
from .partitions import MONTHS
from .stage_asset import stage_asset


@month_check(blocking=True)
def speedup_is_real(month: JudgedMonth) -> CheckFinding:
    """Every measured speed-up follows from its stored samples, for accepted tasks."""
    return verdicts.speedup_is_real(month.key, month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS))


@month_check(blocking=True)
def right_by_their_tests(month: JudgedMonth) -> CheckFinding:
    """For accepted tasks, covering tests still pass and benchmark return values are unchanged."""
    measured = month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS)
    return correctness.right_by_their_tests(measured, month.done_rows(CORRECTNESS, Stage.MEASUREMENTS))


@month_check(blocking=True)
def controls_within_promise(month: JudgedMonth) -> CheckFinding:
    """The base against itself, judged as if it were a patch, is called faster no more often than promised."""
    return verdicts.controls_within_promise(month.rows(MEASUREMENTS))


@month_check(blocking=False)
def time_and_work_agree(month: JudgedMonth) -> CheckFinding:
    """Accepted tasks that take less than half the time take fewer instructions, and the other way round."""
    return verdicts.time_and_work_agree(month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS))


@stage_asset(
    Stage.MEASUREMENTS,
    deps=[discussions, images],
    partitions_def=MONTHS,
    group_name="measure",
    kinds={"asv", "docker", "postgres"},
    description="One row is the author's patch timed against its base, with all samples and a control.",
    columns=RELATIONS["measurements"].columns,
    pool="measure",
    is_shared=True,
    checks=[
        failures_within_budget,
        speedup_is_real,
        right_by_their_tests,
        controls_within_promise,
        time_and_work_agree,
    ],
)
def measurements(
    context: dg.AssetExecutionContext,
    config: MeasurementConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    sampling: SamplingResource,
    llm: LLMResource,
) -> dg.MaterializeResult[Any]:
    """Time the benchmarks of every image, one task at a time unless FC_MEASUREMENT_CONCURRENCY allows more."""
    with stage_run(context, postgres, measurements, config) as stage:
        _, why = containers.engine_for(stage.database, stage.month)
        completions = postgres.completions(reask=config.reask)
        summary = run_loop(run(stage, measurement_tools(stage, mirrors, containers, sampling, llm, completions)))
        with stage.database.transaction() as connection:
            rows = MEASUREMENTS.read(connection, stage.month)
    faster = [row.speedup for row in rows if row.is_faster]
    counts = Counter(row.verdict for row in rows)
    return report(
        context,
        summary,
        rows=len(rows),
        engine=why,
        largest_speedup=round(max(faster, default=1.0), 2),
        **{f"verdict_{verdict.value}": counts[verdict] for verdict in Verdict},
    )
