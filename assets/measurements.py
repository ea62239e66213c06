"""`measurements`: samples of every relevant benchmark: base, oracle, and the base once more as control."""

from collections import Counter
from functools import partial
from typing import Any

import dagster as dg

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.measuring.correctness import checks as correctness
from formulacode_dagster.measuring.measurement import checks as verdicts
from formulacode_dagster.measuring.measurement.cores import leased_cores
from formulacode_dagster.measuring.measurement.stage import Measurements
from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.measurement import Verdict
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun, StageSummary
from formulacode_dagster.operating.store.artifacts import CORRECTNESS, MEASUREMENTS
from formulacode_dagster.operating.store.views import RELATIONS
from resources.containers import ContainersResource
from resources.llm import LLMResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource
from resources.sampling import SamplingResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .images import images
from .materialize import ItemConfig, report, stage_run
from .partitions import MONTHS
from .stage_asset import stage_asset


@month_check(blocking=True)
def speedup_is_real(month: JudgedMonth) -> Judgement:
    """Every measured speed-up follows from its stored samples; of the tasks that go on."""
    return verdicts.speedup_is_real(month.key, month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS))


@month_check(blocking=True)
def right_by_their_tests(month: JudgedMonth) -> Judgement:
    """Of the tasks that go on, the tests that reach the change pass as before, and benchmarks return the same."""
    measured = month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS)
    return correctness.right_by_their_tests(measured, month.done_rows(CORRECTNESS, Stage.MEASUREMENTS))


@month_check(blocking=True)
def controls_within_promise(month: JudgedMonth) -> Judgement:
    """The base against itself, judged as if it were a patch, is called faster no more often than promised."""
    return verdicts.controls_within_promise(month.rows(MEASUREMENTS))


@stage_asset(
    Stage.MEASUREMENTS,
    deps=[images],
    partitions_def=MONTHS,
    group_name="measure",
    kinds={"asv", "docker", "postgres"},
    description="One row is the author's patch timed against its base, with all samples and a control.",
    columns=RELATIONS["measurements"].columns,
    pool="measure",
    is_shared=True,
    checks=[failures_within_budget, speedup_is_real, right_by_their_tests, controls_within_promise],
)
def measurements(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    sampling: SamplingResource,
    llm: LLMResource,
) -> dg.MaterializeResult[Any]:
    """Time every image's benchmarks, one task at a time unless FC_MEASURED_AT_ONCE says otherwise."""
    with stage_run(context, postgres, measurements, config) as run:
        engine, why = containers.engine_for(run.database, run.month)
        summary = time_images(run, postgres, mirrors, containers, sampling, llm, engine)
        with run.database.transaction() as connection:
            rows = MEASUREMENTS.read(connection, run.month)
    faster = [row.speedup for row in rows if row.is_faster]
    counts = Counter(row.verdict for row in rows)
    return report(
        context,
        summary,
        rows=len(rows),
        engine=why,
        largest_speedup=round(max(faster, default=1.0), 2),
        **{verdict.value: counts[verdict] for verdict in Verdict},
    )


def time_images(
    run: StageRun,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    sampling: SamplingResource,
    llm: LLMResource,
    engine: Engine,
) -> StageSummary:
    """Measure what is pending of the month, or this run's part of it."""
    at_once = sampling.settings.measured_at_once
    stage = Measurements(
        run,
        engine,
        mirrors.cache(),
        sampling.plan(),
        containers.limits,
        cores=leased_cores(containers.machine(run.database, engine, run.note), at_once=at_once),
        at_once=at_once,
        suite_repositories=mirrors.settings.suite_repositories,
        writer=partial(llm.workload_writer, postgres.completions(reask=run.options.reask), run.month),
    )
    return run_loop(stage.measure_month())
