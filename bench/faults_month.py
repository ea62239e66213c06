"""The month of `bench/faults.py`: few pull requests, the platform's own stages, stand-ins for Docker and a registry.

Intake, classification and release are the stages themselves, against the sandbox's GitHub, model and Hub. Of building
and measuring, which take minutes a task, only the work is a stand-in: claims, runner, ledger, store and gates are real.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx

from formulacode_dagster.measuring.measurement.persistence import MeasuredPullRequest, save
from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import BusyError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import ItemKind, RunOptions, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.release import PublishedImage
from formulacode_dagster.operating.cancellation.clock import Clock
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.files.atomic import write_atomically
from formulacode_dagster.operating.runner.claims import Worker, shared_stage
from formulacode_dagster.operating.runner.failures import FAILURES_WITHIN_BUDGET, judge_failures
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.gatekeeping import require_open
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import (
    Outcome,
    RunRole,
    Save,
    Sharing,
    StageRun,
    StageSummary,
    WorkItem,
)
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS, IMAGES, PROBLEM_STATEMENTS
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.completions import StoredCompletions
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import done_in
from formulacode_dagster.releasing.dataset import stage as releasing
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.registries import stage as publishing
from formulacode_dagster.releasing.registries.publishing import Registry
from formulacode_dagster.selection.classification import stage as classifying
from formulacode_dagster.selection.classification.budget import Prices
from formulacode_dagster.selection.classification.model_access import ModelAccess
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.github.tracking import TrackingRules
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.pacing import Pacing
from formulacode_dagster.sources.intake.pull_requests import stage as taking_in
from formulacode_dagster.sources.intake.repositories import stage as tracking
from tests.records import make_image, make_measurement, make_spec, make_statement
from tests.support.correctness import correctness_row, reaching_test
from tests.support.git_world import GITHUB, BareRepository

MONTH = "2026-02"
TITLES = {"acme/fast": ("Cache the rows", "Fix typo in docs", "Speed up parsing"), "demo/rows": ("Vectorize the sum",)}
"""Pull requests by repository, with every end that selection has."""
SHARED = (Stage.ENVIRONMENTS, Stage.IMAGES, Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES)
LEASE = timedelta(hours=1)
"""Leases of the dead run out by a statement, not by waiting."""
CALM = Pacing(rest_points=10**6, graphql_points=10**6, code_searches=10**6, rest_seconds=10**6, graphql_seconds=10**6)
V = TypeVar("V")


def make_repositories(folder: Path) -> None:
    """Write bare repositories with one squashed pull request for each of `TITLES`."""
    start = Month.parse(MONTH).start
    for name, titles in TITLES.items():
        made = BareRepository(folder / f"{name}.git")
        made.add("Begin", start - timedelta(days=9), {"asv.conf.json": "{}", "pkg/core.py": "x = 0\n"}, GITHUB)
        for number, title in enumerate(titles, 1):
            at = start + timedelta(days=number)
            made.add(f"{title} (#{number})", at, {"pkg/core.py": f"x = {number}\n"}, GITHUB)
        made.write()


class SimulatedClock(Clock):
    """Time that passes by being slept away, and that an operator may set: *jump* seconds at the *at*-th reading."""

    def __init__(self, at: int = 0, jump: float = 0.0, say: Callable[[], None] = lambda: None) -> None:
        self._now, self._readings, self._at, self._jump = Month.parse(MONTH).end.timestamp(), 0, at, jump
        self._say = say

    def time(self) -> float:
        """The time, after the jump if it is due."""
        self._readings += 1
        if self._readings == self._at:
            self._say()
            self._now += self._jump
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Pass at once."""
        self._now += seconds


Disturb = Callable[[str, str], None]
"""(stage, item): raises what Docker or a registry would raise, if its turn has come."""


@dataclass(frozen=True)
class Place:
    """A month's files, and the addresses of everything outside."""

    home: Path
    repositories: Path
    database_url: str
    urls: Mapping[str, str]
    hub: bool
    """Release to the Hub, otherwise to a folder."""

    @property
    def destination(self) -> FolderDestination | HubDestination:
        """The dataset."""
        if self.hub:
            return HubDestination("sandbox/formulacode", self.urls["hub"], "sandbox", sleep=lambda _: None)
        return FolderDestination(self.home / "dataset")


@dataclass(frozen=True)
class Run:
    """One try at the month, in a process of its own."""

    place: Place
    database: Database
    clock: Clock
    disturb: Disturb
    transport: httpx.AsyncBaseTransport | None = None
    force: bool = False

    def all_stages(self, stages: Sequence[Work] | None = None) -> None:
        """Every stage with its gate, up to the release; raises what stops it."""
        run_id = uuid.uuid4().hex
        for number, (stage, work) in enumerate(stages or STAGES):
            require_open(self.database, MONTH, [(each, FAILURES_WITHIN_BUDGET) for each, _ in STAGES[:number]])
            with self._held(StageRun(self.database, stage, MONTH, run_id, RunOptions(concurrency=2))) as held:
                run_loop(work(self._forced(held), self))
            with self.database.transaction() as connection:
                finding = judge_failures(connection, MONTH, stage, 0.0)
                verdict = CheckVerdict(
                    **dict(finding), stage=stage, month=MONTH, check=FAILURES_WITHIN_BUDGET, blocking=True
                )
                record_verdict(connection, verdict, run_id)

    def _forced(self, run: StageRun) -> StageRun:
        """*run* again for everything if a person has said so and some of the stage failed."""
        if not self.force:
            return run
        with self.database.transaction() as connection:
            if judge_failures(connection, MONTH, run.stage, 0.0).passed:
                return run
        return replace(run, options=run.options.model_copy(update={"force": True, "reason": "a fault has ended"}))

    @contextmanager
    def _held(self, run: StageRun) -> Iterator[StageRun]:
        """As `assets.materialize` holds a month: the second run of a shared stage joins the first."""
        worker = Worker(run.stage, MONTH, f"{run.run_id} {os.getpid()}", LEASE)
        part = RunRole.LEADS
        with ExitStack() as stack:
            try:
                stack.enter_context(self.database.month_lock(run.stage, MONTH, run.run_id))
            except BusyError:
                with self.database.transaction() as connection:
                    if run.stage not in SHARED or shared_stage(connection, run.stage, MONTH) is None:
                        raise
                part = RunRole.JOINS
            sharing = Sharing(part, worker, look_again_seconds=0.05) if run.stage in SHARED else None
            yield replace(run, sharing=sharing)

    def source(self, stage: StageRun) -> GitHubSource:
        """GitHub, over a client with the clock of this run."""
        client = GitHubTransport(
            self.place.urls["github"], ["t" * 40], pacing=CALM, clock=self.clock, transport=self.transport
        )
        return GitHubSource(client, stage.stage, MONTH, stage.run_id)


async def _track(stage: StageRun, run: Run) -> StageSummary:
    return await tracking.run(stage, tracking.RepositoryTools(run.source(stage), TrackingRules()))


async def _take_in(stage: StageRun, run: Run) -> StageSummary:
    mirrors = MirrorCache(run.place.home / "mirrors", run.place.repositories.as_uri(), filtered=False)
    return await taking_in.run(stage, taking_in.PullRequestTools(run.source(stage), mirrors))


async def _classify(stage: StageRun, run: Run) -> StageSummary:
    models = ModelAccess(
        f"{run.place.urls['model']}/v1", "key", 4096, None, 5.0, Prices(), StoredCompletions(run.database)
    )
    return await classifying.run(stage, classifying.ClassificationTools(models, "sandbox-rules"))


def _digest(*parts: object) -> str:
    return "sha256:" + hashlib.sha256(repr(parts).encode()).hexdigest()


def _key(pr: PullRequest) -> dict[str, Any]:
    return {"month": MONTH, "repository_id": pr.facts.repository_id, "number": pr.facts.number}


def _state(_: Run, pr: PullRequest) -> ProblemStatement:
    return make_statement(f"{pr.item} is slow.", **_key(pr))


def _plan(_: Run, pr: PullRequest) -> Environment:
    return Environment.model_validate(
        {
            **_key(pr),
            "python": "3.12",
            "python_reason": "declared",
            "python_candidates": ("3.12",),
            "package_root": ".",
            "config_path": "asv.conf.json",
            "benchmark_dir": "benchmarks",
            "requirements": (),
            "lock": "numpy==2.0.0\n",
            "lock_sha256": "0",
            "resolver": "uv",
            "exclude_newer": pr.facts.merged_at,
        }
    )


def _build(run: Run, pr: PullRequest) -> BuiltImage:
    digest = _digest("image", pr.item)
    # what a daemon keeps of it
    write_atomically(run.place.home / "images" / digest.removeprefix("sha256:"), pr.item.encode())
    spec = make_spec(task_id=pr.task_id, repository=pr.facts.repository, repository_id=pr.facts.repository_id)
    return make_image(**_key(pr), spec=spec, digest=digest)


def _measure(_: Run, pr: PullRequest) -> MeasuredPullRequest:
    digest = _digest("image", pr.item)
    speedups = {"bench.time_a": 1.0 + pr.facts.number}
    measured = make_measurement(speedups, **_key(pr), image_digest=digest, returned={"bench.time_a": "same"})
    return MeasuredPullRequest(measured, correctness_row(reaching_test("...", "..."), **_key(pr), image_digest=digest))


async def _stand_in(
    stage: StageRun, run: Run, after: Stage, work: Callable[[Run, PullRequest], V], save_rows: Save[V]
) -> StageSummary:
    """A stage whose work is *work*, of what is done in *after*."""
    with stage.database.transaction() as connection:
        prs = done_in(connection, MONTH, after)

    def one(item: WorkItem[PullRequest]) -> Outcome[V]:
        run.disturb(stage.stage, item.name)
        return Outcome(work(run, item.value))

    items = [WorkItem(pr.item, fingerprint(stage.stage, pr.change.patch_sha256), pr) for pr in prs]
    return await run_items(stage, ItemKind.PULL_REQUEST, items, in_thread(one), save_rows, concurrency=2)


class FolderRegistry(Registry):
    """A registry that keeps manifests in a folder: no daemon is asked."""

    def __init__(self, folder: Path, disturb: Disturb) -> None:
        self._folder, self._disturb = folder, disturb

    def publish(self, image: BuiltImage, *, month: str) -> PublishedImage:
        """Push and pull back by digest."""
        self._disturb(Stage.PUBLISHED_IMAGES, image.spec.task_id)
        manifest = self._folder / image.spec.task_id
        write_atomically(manifest, image.digest.encode())
        pulled = _digest("manifest", manifest.read_bytes())
        return PublishedImage(
            month=month,
            repository_id=image.repository_id,
            number=image.number,
            reference=f"registry/{image.spec.task_id.lower()}:1",
            digest=_digest("manifest", image.digest.encode()),
            pulled_digest=pulled,
            image_digest=image.digest,
            size_bytes=1,
        )


async def _publish(stage: StageRun, run: Run) -> StageSummary:
    registry = FolderRegistry(run.place.home / "registry", run.disturb)
    return await publishing.run(stage, publishing.PublishedImageTools(registry, "registry", 2))


async def _release(stage: StageRun, run: Run) -> StageSummary:
    return await releasing.run(stage, releasing.PublishedDatasetTools(run.place.destination))


Work = tuple[Stage, Callable[[StageRun, Run], Coroutine[Any, Any, StageSummary]]]
STAGES: tuple[Work, ...] = (
    (Stage.REPOSITORIES, _track),
    (Stage.PULL_REQUESTS, _take_in),
    (Stage.CLASSIFICATIONS, _classify),
    (
        Stage.PROBLEM_STATEMENTS,
        partial(_stand_in, after=Stage.CLASSIFICATIONS, work=_state, save_rows=PROBLEM_STATEMENTS.save),
    ),
    (Stage.ENVIRONMENTS, partial(_stand_in, after=Stage.CLASSIFICATIONS, work=_plan, save_rows=ENVIRONMENTS.save)),
    (Stage.IMAGES, partial(_stand_in, after=Stage.ENVIRONMENTS, work=_build, save_rows=IMAGES.save)),
    (Stage.MEASUREMENTS, partial(_stand_in, after=Stage.IMAGES, work=_measure, save_rows=save)),
    (Stage.PUBLISHED_IMAGES, _publish),
    (Stage.PUBLISHED_DATASET, _release),
)
"""In the order in which a run has them, each with its function."""

logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
