"""`measurements`: samples of every relevant benchmark, base against oracle, and a placebo."""

import asyncio
from typing import Any

import dagster as dg

from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.progress import listener
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, WorkItem
from formulacode_dagster.measurement import checks as verdicts
from formulacode_dagster.measurement.measure import measure_task
from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.store.artifacts import ENVIRONMENTS, IMAGES, MEASUREMENTS
from formulacode_dagster.store.pull_requests import done_in, patch_of
from formulacode_dagster.suites.overlays import first_suite, later_suites
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, month_check
from .images import images
from .materialize import ItemConfig, report, stage_asset, stage_run
from .partitions import MONTHS


@month_check(blocking=True)
def speedup_is_real(month: JudgedMonth) -> Judgement:
    """Every measured speed-up follows from its stored samples; of the tasks that go on."""
    return verdicts.speedup_is_real(month.key, month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS))


@stage_asset(
    Stage.MEASUREMENTS,
    deps=[images],
    partitions_def=MONTHS,
    group_name="measure",
    kinds={"asv", "docker", "postgres"},
    description="One row is the author's patch timed against its base, with all samples and a placebo.",
    columns={
        "results": ("jsonb", "samples and statistics of every relevant benchmark"),
        "failures": ("jsonb", "benchmarks that could not be timed; a timeout is a failure"),
        "speedup": ("double precision", "geometric mean over the benchmarks that are really faster"),
        "is_faster": ("boolean", "whether the speed-up is real"),
    },
    pool="measure",
    checks=[speedup_is_real],
)
def measurements(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
) -> dg.MaterializeResult[Any]:
    """Time every image's benchmarks, one task at a time so that nothing disturbs them."""
    with stage_run(context, postgres, measurements, config) as run:
        engine, why = containers.chosen()
        plan, limits, cache = containers.plan, containers.limits, mirrors.cache()
        if not config.dry_run:
            engine.clean()
        with run.database.transaction() as connection:
            found = done_in(connection, run.month, Stage.IMAGES)
            built = IMAGES.read_keys(connection, run.month, [pr.key for pr in found])
            planned = ENVIRONMENTS.read_keys(connection, run.month, [pr.key for pr in found])

        def measure(item: WorkItem[tuple[PullRequest, BuiltImage]]) -> Outcome[Measurement]:
            pr, image = item.value
            with run.database.transaction() as connection:
                patch = patch_of(connection, pr)
            mirror = cache.ensure(pr.facts.repository, commits=(pr.facts.merge_commit_sha,))
            folder = image.spec.benchmark_dir
            measured, log = measure_task(
                engine,
                image,
                pr=pr,
                patch=patch,
                suite=first_suite(mirror, pr, folder, suite_sha=planned[pr.key].suite_sha),
                later=lambda names: later_suites(mirror, pr, folder, names),
                plan=plan,
                limits=limits,
                run_id=run.run_id,
                progress=lambda line: listener().note(Stage.MEASUREMENTS, f"{item.name}: {line}"),
            )
            detail = f"{measured.speedup:.2f}× on {len(measured.significant)} of {len(measured.results)} benchmarks"
            refused = None if measured.is_faster else Rejection(RejectionReason.NO_SPEEDUP, detail)
            return Outcome(measured, detail=detail, log=log, rejection=refused)

        items = [WorkItem(pr.item, _inputs(built[pr.key]), (pr, built[pr.key])) for pr in found]
        summary = asyncio.run(run_items(run, items, in_thread(measure), MEASUREMENTS.save, concurrency=1))
        with run.database.transaction() as connection:
            rows = MEASUREMENTS.read(connection, run.month)
    faster = [row.speedup for row in rows if row.is_faster]
    return report(context, summary, rows=len(rows), engine=why, largest_speedup=round(max(faster, default=1.0), 2))


def _inputs(image: BuiltImage) -> str:
    return fingerprint(Stage.MEASUREMENTS, image.digest, image.spec.model_dump(mode="json"))
