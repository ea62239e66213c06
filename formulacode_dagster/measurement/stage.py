"""What the `measurements` stage does: the benchmarks of each image timed, one task at a time unless told otherwise."""

from __future__ import annotations

import functools
import hashlib
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

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
from formulacode_dagster.models.measurement import Measurement, Occasion, Unit, Verdict
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.store.artifacts import ENVIRONMENTS, IMAGES
from formulacode_dagster.store.measurements import last_attempt, save_measurements
from formulacode_dagster.store.pull_requests import done_in, patch_of
from formulacode_dagster.suites.overlays import first_suite, later_suites
from formulacode_dagster.suites.remote import harness_archive

from .measure import measure_task
from .plan import SamplingPlan

REJECTIONS = {
    Verdict.UNCHANGED: RejectionReason.NO_SPEEDUP,
    Verdict.SLOWER: RejectionReason.SLOWER,
    Verdict.TRADE_OFF: RejectionReason.TRADE_OFF,
    Verdict.INCONCLUSIVE: RejectionReason.INCONCLUSIVE,
}
"""What the others end with: only a task that is faster goes on."""


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
    cores: queue.SimpleQueue[int] = field(default_factory=queue.SimpleQueue)
    """Those that are free, counted from the last."""

    def __post_init__(self) -> None:
        for number in range(self.at_once):
            self.cores.put(number)

    async def measure_month(self) -> StageSummary:
        """Measure what is pending of the month; raises as `run_items`."""
        if not self.run.options.dry_run:
            self.engine.clean()
        with self.run.database.transaction() as connection:
            prs = done_in(connection, self.run.month, Stage.IMAGES)
            images = IMAGES.read_keys(connection, self.run.month, [pr.key for pr in prs])
            environments = ENVIRONMENTS.read_keys(connection, self.run.month, [pr.key for pr in prs])
        items = [
            WorkItem(pr.item, inputs_of(task, self.plan, self.limits), task)
            for pr in prs
            for task in [MeasuredTask(pr, images[pr.key], environments[pr.key])]
        ]
        return await run_items(self.run, items, in_thread(self.measure), save_measurements, concurrency=self.at_once)

    def measure(self, item: WorkItem[MeasuredTask]) -> Outcome[Measurement]:
        """Time the base of *item* against its oracle; rejected unless that is faster. Raises as `measure_task`."""
        pr, image = item.value.pr, item.value.image
        with self.run.database.transaction() as connection:
            patch = patch_of(connection, pr)
            before = last_attempt(connection, self.run.month, pr.key)
        mirror = self.cache.ensure(pr.facts.repository, commits=(pr.facts.merge_commit_sha,))
        folder = image.spec.benchmark_dir
        with self._core() as core:
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
                core=core,
                progress=lambda line: listener().note(Stage.MEASUREMENTS, f"{item.name}: {line}"),
            )
        occasion = Occasion.FORCED if self.run.options.force else Occasion.CHANGED if before else Occasion.FIRST
        measured = measured.model_copy(update={"occasion": occasion, "run_id": self.run.run_id})
        detail = told(measured)
        refused = None if measured.is_faster else Rejection(REJECTIONS[measured.verdict], detail)
        return Outcome(measured, detail=detail, log=log, rejection=refused)

    @contextmanager
    def _core(self) -> Iterator[int]:
        core = self.cores.get()
        try:
            yield core
        finally:
            self.cores.put(core)


def inputs_of(task: MeasuredTask, plan: SamplingPlan, limits: ResourceLimits) -> str:
    """Everything the samples and their verdict depend on; whether tasks are timed side by side is no part of it."""
    return fingerprint(
        Stage.MEASUREMENTS,
        task.image.digest,
        task.image.spec.model_dump(mode="json"),
        task.pr.change.patch_sha256,
        (task.environment.suite_sha, task.pr.facts.merge_commit_sha),
        plan.model_dump(mode="json"),
        [plan.rule(unit).model_dump(mode="json") for unit in Unit],
        limits.model_dump(mode="json"),
        harness_sha256(),
    )


def told(measured: Measurement) -> str:
    """One line for the ledger: what it is, by how much, and how sure that is."""
    text = f"{measured.speedup:.2f}× (95 % {measured.low:.2f} to {measured.high:.2f})"
    text += f" over {len(measured.results)} benchmarks, {len(measured.faster)} faster, {len(measured.slower)} slower"
    return f"{text}; {measured.needs}" if measured.needs else text


@functools.cache
def harness_sha256() -> str:
    """Hash of what runs in the sessions."""
    return hashlib.sha256(harness_archive()).hexdigest()
