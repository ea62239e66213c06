"""What the `measurements` stage does: the benchmarks of each image timed, one task at a time unless told otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from formulacode_dagster.engines.protocol import Engine
from formulacode_dagster.git.mirror import MirrorCache
from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.progress import listener
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.store.artifacts import ENVIRONMENTS, IMAGES, MEASUREMENTS
from formulacode_dagster.store.pull_requests import done_in, patch_of
from formulacode_dagster.suites.overlays import first_suite, later_suites

from .measure import measure_task
from .plan import SamplingPlan


@dataclass(frozen=True)
class MeasuredTask:
    """What is measured of one pull request."""

    pr: PullRequest
    image: BuiltImage
    environment: Environment


@dataclass(frozen=True)
class Measurements:
    """The measurements of one run of the stage."""

    run: StageRun
    engine: Engine
    cache: MirrorCache
    plan: SamplingPlan
    limits: ResourceLimits
    at_once: int = 1
    """Tasks timed at the same time: more than one disturb each other."""

    async def measure_month(self) -> StageSummary:
        """Measure what is pending of the month; raises as `run_items`."""
        if not self.run.options.dry_run:
            self.engine.clean()
        with self.run.database.transaction() as connection:
            prs = done_in(connection, self.run.month, Stage.IMAGES)
            images = IMAGES.read_keys(connection, self.run.month, [pr.key for pr in prs])
            environments = ENVIRONMENTS.read_keys(connection, self.run.month, [pr.key for pr in prs])
        items = [
            WorkItem(pr.item, _inputs(images[pr.key]), MeasuredTask(pr, images[pr.key], environments[pr.key]))
            for pr in prs
        ]
        return await run_items(self.run, items, in_thread(self.measure), MEASUREMENTS.save, concurrency=self.at_once)

    def measure(self, item: WorkItem[MeasuredTask]) -> Outcome[Measurement]:
        """Time the base of *item* against its oracle; rejected when that is no faster. Raises as `measure_task`."""
        pr, image = item.value.pr, item.value.image
        with self.run.database.transaction() as connection:
            patch = patch_of(connection, pr)
        mirror = self.cache.ensure(pr.facts.repository, commits=(pr.facts.merge_commit_sha,))
        folder = image.spec.benchmark_dir
        measured, log = measure_task(
            self.engine,
            image,
            pr=pr,
            patch=patch,
            suite=first_suite(mirror, pr, folder, suite_sha=item.value.environment.suite_sha),
            later=lambda names: later_suites(mirror, pr, folder, names),
            plan=self.plan,
            limits=self.limits,
            run_id=self.run.run_id,
            progress=lambda line: listener().note(Stage.MEASUREMENTS, f"{item.name}: {line}"),
        )
        detail = f"{measured.speedup:.2f}× on {len(measured.significant)} of {len(measured.results)} benchmarks"
        refused = None if measured.is_faster else Rejection(RejectionReason.NO_SPEEDUP, detail)
        return Outcome(measured, detail=detail, log=log, rejection=refused)


def _inputs(image: BuiltImage) -> str:
    return fingerprint(Stage.MEASUREMENTS, image.digest, image.spec.model_dump(mode="json"))
