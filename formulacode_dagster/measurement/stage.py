"""What the `measurements` stage does: the benchmarks of each image timed, and the tests of what is faster run.

One task is timed at a time, unless told otherwise, and no test runs while one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from formulacode_dagster.correctness.compare import compare_tests
from formulacode_dagster.correctness.telling import report, told
from formulacode_dagster.engines.protocol import Engine
from formulacode_dagster.git.mirror import MirrorCache
from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.progress import listener
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.running.turns import Turns
from formulacode_dagster.store.artifacts import CORRECTNESS, ENVIRONMENTS, IMAGES, MEASUREMENTS
from formulacode_dagster.store.pull_requests import done_in, patch_of
from formulacode_dagster.store.surveys import read_surveys, save_survey
from formulacode_dagster.suites.overlays import first_suite
from formulacode_dagster.workloads.suites import other_suites

from .measure import measure_task
from .plan import SamplingPlan
from .surveyed import Surveyed


@dataclass(frozen=True)
class MeasuredTask:
    """What is measured of one pull request."""

    pr: PullRequest
    image: BuiltImage
    environment: Environment


@dataclass(frozen=True)
class Measured:
    """What is kept of one pull request; its tests are run only where it is faster."""

    measurement: Measurement
    correctness: Correctness | None = None


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
    turns: Turns = field(default_factory=Turns)
    """Of timing and testing."""

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
        return await run_items(self.run, items, in_thread(self.measure), _save, concurrency=self.at_once)

    def measure(self, item: WorkItem[MeasuredTask]) -> Outcome[Measured]:
        """Time the base of *item* against its oracle, and run the tests of both: rejected unless faster and right.

        Raises as `measure_task` and `compare_tests`.
        """
        pr, image = item.value.pr, item.value.image
        with self.run.database.transaction() as connection:
            patch = patch_of(connection, pr)
        mirror = self.cache.ensure(pr.facts.repository, commits=(pr.facts.merge_commit_sha,))
        folder = image.spec.benchmark_dir
        with self.turns.of("timing"):
            measured, log = measure_task(
                self.engine,
                image,
                pr=pr,
                patch=patch,
                suite=first_suite(mirror, pr, folder, suite_sha=item.value.environment.suite_sha),
                later=lambda names: other_suites(mirror, pr, image.spec, names),
                plan=self.plan,
                limits=self.limits,
                run_id=self.run.run_id,
                surveyed=self._surveyed(item),
                progress=lambda line: listener().note(Stage.MEASUREMENTS, f"{item.name}: {line}"),
            )
        if not measured.is_faster:
            return outcome_of(measured, None, log)
        with self.turns.of("testing"):
            listener().note(Stage.MEASUREMENTS, f"{item.name}: running the repository's own tests on both sides")
            tested = compare_tests(self.engine, image, patch=patch, limits=self.limits, run_id=self.run.run_id)
        return outcome_of(measured, tested, log)

    def _surveyed(self, item: WorkItem[MeasuredTask]) -> Surveyed:
        """What earlier surveys of *item* ruled out, kept beyond this run."""
        key, database = item.value.pr.key, self.run.database

        def keep(suite: str, names: frozenset[str]) -> None:
            with database.transaction() as connection:
                save_survey(connection, self.run.month, key, item.inputs, suite=suite, ruled_out=names)

        with database.transaction() as connection:
            return Surveyed(read_surveys(connection, self.run.month, key, item.inputs), keep)


def outcome_of(measured: Measurement, tested: Correctness | None, log: str) -> Outcome[Measured]:
    """How a pull request ends the stage: done when it is faster and right, with all that was found in any case."""
    detail = f"{measured.speedup:.2f}× on {len(measured.significant)} of {len(measured.results)} benchmarks"
    if tested is None:
        return Outcome(Measured(measured), detail=detail, log=log, rejection=Rejection(RejectionReason.NO_SPEEDUP))
    wrong = Rejection(RejectionReason.ORACLE_BREAKS_TESTS) if tested.broken else None
    log = f"{log}\n{report(tested)}"
    return Outcome(Measured(measured, tested), detail=f"{detail}; {told(tested)}", log=log, rejection=wrong)


def _save(connection: Connection, rows: Sequence[Measured]) -> None:
    MEASUREMENTS.save(connection, [row.measurement for row in rows])
    CORRECTNESS.save(connection, [row.correctness for row in rows if row.correctness is not None])


def _inputs(image: BuiltImage) -> str:
    return fingerprint(Stage.MEASUREMENTS, image.digest, image.spec.model_dump(mode="json"))
