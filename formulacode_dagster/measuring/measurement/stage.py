"""The stage `measurements`: time the benchmarks of each image, and run the tests of what is faster.

One task is processed at a time unless configured otherwise, so that nothing of ours runs next to a timing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from formulacode_dagster.building.engines.protocol import Engine, Session, keeps
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.measuring.correctness.compare import compare_tests
from formulacode_dagster.measuring.correctness.summary import report_of_tests, summary_of_tests
from formulacode_dagster.measuring.workloads.documents import Shown, shown_at, threads_of
from formulacode_dagster.measuring.workloads.external_suites import candidates_for, suites_elsewhere
from formulacode_dagster.measuring.workloads.overlay import frames_sha256
from formulacode_dagster.measuring.workloads.shown_code import shows_code
from formulacode_dagster.measuring.workloads.snippets import texts_of
from formulacode_dagster.measuring.workloads.suites import other_suites
from formulacode_dagster.measuring.workloads.written import WRITER_VERSION, Writer
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.measurement import Measurement, Occasion, RandomizationUnit, Verdict
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem, require_reason
from formulacode_dagster.operating.store.artifacts import DISCUSSIONS, ENVIRONMENTS, IMAGES, PullRequestKey
from formulacode_dagster.operating.store.measurements import last_attempt, read_surveys, save_survey
from formulacode_dagster.operating.store.pull_requests import done_in, patch_of
from formulacode_dagster.selection.classification.language_model import LanguageModel
from formulacode_dagster.selection.classification.model_access import ModelAccess, SpendingAccount
from formulacode_dagster.sources.git.mirror import MirrorCache

from .cores import Cores
from .measure import MeasurementSettings, TaskToMeasure, TimedTask, WorkloadSources, measure_task
from .model_adapter import SyncModelAdapter, with_cost
from .persistence import MeasuredPullRequest, keep, save, untested
from .plan import SamplingPlan
from .procedure import harness_sha256
from .relevance import UntimedCounts
from .surveyed import Surveyed

REJECTIONS = {
    Verdict.UNCHANGED: RejectionReason.NO_SPEEDUP,
    Verdict.SLOWER: RejectionReason.SLOWER,
    Verdict.TRADE_OFF: RejectionReason.TRADE_OFF,
    Verdict.INCONCLUSIVE: RejectionReason.INCONCLUSIVE,
}
"""Rejections by verdict: only a faster task continues."""


@dataclass(frozen=True)
class MeasuredTask:
    """Inputs of the measurement of one pull request."""

    pr: PullRequest
    image: BuiltImage
    environment: Environment
    walk: LinkWalk | None = None
    """The discussion; None if GitHub was not asked."""


def work_item(task: MeasuredTask, inputs: str, engine: Engine) -> WorkItem[MeasuredTask]:
    """Return *task* as a shared item: on the machine with its image, next to tasks with the same environment."""
    layer = task.image.tiers[-2].tag
    return WorkItem(task.pr.item, inputs, task, shared_with=layer, is_here=keeps(engine, task.image))


@dataclass(frozen=True)
class MeasurementTools:
    """Everything a measurement needs besides the task."""

    engine: Engine
    mirrors: MirrorCache
    plan: SamplingPlan
    limits: ResourceLimits
    cores: Cores = field(default_factory=Cores)
    concurrency: int = 1
    """Tasks built, timed and tested at the same time; more than one disturb each other."""
    suite_repositories: tuple[str, ...] = ()
    """Repositories that may contain a suite for others."""
    models: ModelAccess | None = None
    writer: str = ""
    """Model that writes benchmarks if nothing else executes a change; empty: none."""

    def sources(self, repository: str) -> tuple[str, ...]:
        """Return what may provide workloads for *repository* besides itself; part of a measurement's inputs."""
        writer = (self.writer, WRITER_VERSION) if self.writer else ()
        return (*candidates_for(repository, self.suite_repositories), *writer)

    @asynccontextmanager
    async def connected_writer(self, account: SpendingAccount) -> AsyncIterator[LanguageModel | None]:
        """Connect to the writer, if there is one; raises as `ModelAccess.connect`."""
        if self.models is None or not self.writer:
            yield None
            return
        async with self.models.connect(account, [self.writer]) as (model,):
            yield model


async def run(stage: StageRun, tools: MeasurementTools) -> StageSummary:
    """Measure the pending tasks of the month, or this run's part; raises as `run_items` and `require_reason`."""
    require_reason(stage.options)
    if not stage.options.dry_run:
        tools.engine.clean()
    with stage.database.transaction() as connection:
        prs = done_in(connection, stage.month, Stage.IMAGES)
        keys = [pr.key for pr in prs]
        images = IMAGES.read_keys(connection, stage.month, keys)
        environments = ENVIRONMENTS.read_keys(connection, stage.month, keys)
        walks = {key: row.walk for key, row in DISCUSSIONS.read_keys(connection, stage.month, keys).items()}
    tasks = [
        MeasuredTask(pr, images[pr.key], environments[pr.key], walks.get(pr.key))
        for pr in longest_build_first(prs, images)
    ]
    items = [work_item(task, inputs_of(task, tools), tools.engine) for task in tasks]
    loop = asyncio.get_running_loop()
    async with tools.connected_writer(stage) as model:

        def measure(item: WorkItem[MeasuredTask]) -> Outcome[MeasuredPullRequest]:
            if model is None:
                return TaskMeasurement(stage, tools, item).outcome()
            writer = SyncModelAdapter(model, loop)
            return with_cost(writer, TaskMeasurement(stage, tools, item, writer).outcome)

        return await run_items(
            stage, ItemKind.PULL_REQUEST, items, in_thread(measure), save, concurrency=tools.concurrency
        )


@dataclass(frozen=True)
class TaskMeasurement:
    """The measurement of one task in one run."""

    stage: StageRun
    tools: MeasurementTools
    item: WorkItem[MeasuredTask]
    writer: Writer | None = None

    def outcome(self) -> Outcome[MeasuredPullRequest]:
        """Time the base against the oracle and run the tests of both: rejected unless faster and right.

        A task that an earlier attempt timed and could not test is not timed again, unless the run is forced. Raises as
        `measure_task` and `compare_tests`; what was timed by then is stored.
        """
        pr, month = self.item.value.pr, self.stage.month
        with self.stage.database.transaction() as connection:
            patch = patch_of(connection, pr)
            before = last_attempt(connection, month, pr.key)
            untested_row = untested(connection, month, pr.key, self.item.inputs)
        if untested_row is not None and not self.stage.options.force:
            log = f"{_described(untested_row.measurement)} was kept, and is not taken again"
            self._note(log)
            with _with_logs([log]):
                return self._tested(untested_row, patch, log)
        logs: list[str] = []
        with _with_logs(logs), ExitStack() as sessions:
            timed = self._timed(patch, sessions, is_first=not before)
            logs.append(timed.log)
            measured = self._stored(timed, is_first=not before)
            if not measured.measurement.is_faster or measured.measurement.returning_other:
                return outcome_of(measured, timed.log)
            return self._tested(measured, patch, timed.log, timed.oracle)

    def _timed(self, patch: bytes, sessions: ExitStack, *, is_first: bool) -> TimedTask:
        task, tools = self.item.value, self.tools
        pr, folder = task.pr, task.image.spec.benchmark_dir
        mirror = tools.mirrors.ensure(pr.facts.repository, commits=(pr.facts.merge_commit_sha,))

        def shown(names: Collection[str]) -> Shown:
            texts = shown_at(mirror, pr.change.base_sha, names, benchmark_dir=folder)
            return replace(texts, threads=threads_of(task.walk))

        # read on demand: a task with a suite of its own needs no other
        external = suites_elsewhere(tools.mirrors, tools.suite_repositories, pr, folder, self._note)
        workloads = WorkloadSources(
            suite=first_suite(mirror, pr, folder, suite_sha=task.environment.suite_sha),
            later=lambda names: other_suites(mirror, pr, task.image.spec, names, elsewhere=external),
            shown=shown,
            writer=self.writer,
        )
        return measure_task(
            tools.engine,
            TaskToMeasure(pr, patch, task.image, self.stage.run_id, sessions),
            workloads,
            MeasurementSettings(tools.plan, tools.limits, tools.cores),
            surveyed=self._surveyed(),
            keep=partial(self._stored, is_first=is_first),
            progress=self._note,
        )

    def _stored(self, timed: TimedTask, *, is_first: bool) -> MeasuredPullRequest:
        options = self.stage.options
        row = timed.measurement.model_copy(
            update={
                "occasion": Occasion.FORCED if options.force else Occasion.FIRST if is_first else Occasion.CHANGED,
                "reason": options.reason if options.force else "",
                "inputs": self.item.inputs,
                "run_id": self.stage.run_id,
                "compiled": timed.hidden,
            }
        )
        is_task = row.is_faster and not row.returning_other
        with self.stage.database.transaction() as connection:
            measured = keep(connection, MeasuredPullRequest(row, procedure=timed.procedure if is_task else None))
        self._note(f"{_described(measured.measurement)} is kept")
        return measured

    def _tested(
        self, measured: MeasuredPullRequest, patch: bytes, log: str, oracle: Session | None = None
    ) -> Outcome[MeasuredPullRequest]:
        """Run the tests of both sides, from the session *oracle* if it is still open; raises as `compare_tests`."""
        self._note("running the repository's own tests on both sides")
        tools, compiled = self.tools, measured.measurement.compiled
        with tools.cores.building():
            tested = compare_tests(
                tools.engine,
                self.item.value.image,
                patch=patch,
                limits=tools.limits,
                run_id=self.stage.run_id,
                hidden=compiled,
                oracle=oracle,
            )
        return outcome_of(replace(measured, correctness=tested), log)

    def _surveyed(self) -> Surveyed:
        """Return what earlier surveys ruled out, which is stored beyond this run."""
        key, database, month = self.item.value.pr.key, self.stage.database, self.stage.month

        def store(suite: str, names: frozenset[str]) -> None:
            with database.transaction() as connection:
                save_survey(connection, month, key, self.item.inputs, suite=suite, ruled_out=names)

        with database.transaction() as connection:
            return Surveyed(read_surveys(connection, month, key, self.item.inputs), store)

    def _note(self, line: str) -> None:
        self.stage.note(f"{self.item.name}: {line}")


@contextmanager
def _with_logs(logs: Sequence[str]) -> Iterator[None]:
    """Put *logs* before the log of a failure: of tests, or of a session which finds its image changed as it closes."""
    try:
        yield
    except ItemFailure as failure:
        # what fails before has a log of its own
        if logs:
            failure.log = "\n".join(filter(None, [*logs, str(failure), failure.log or failure.log_tail]))
        raise


def _described(row: Measurement) -> str:
    return f"measurement {row.attempt} ({row.verdict}, {row.speedup_text})"


def longest_build_first(prs: Sequence[PullRequest], images: Mapping[PullRequestKey, BuiltImage]) -> list[PullRequest]:
    """Sort by build time, longest first, so that the run does not end waiting for a compiled arm."""
    return sorted(prs, key=lambda pr: -images[pr.key].tiers[-1].seconds)


def outcome_of(measured: MeasuredPullRequest, log: str) -> Outcome[MeasuredPullRequest]:
    """Return how a pull request ends the stage: done if it is faster and right, with all findings in any case."""
    detail, tested = summary_of(measured.measurement), measured.correctness
    if others := measured.measurement.returning_other:
        detail = f"{detail}; with the author's patch {', '.join(others)} returns something else"
        rejection = Rejection(RejectionReason.ORACLE_CHANGES_RESULTS, detail)
        return Outcome(measured, detail=detail, log=log, rejection=rejection)
    if tested is None:
        row = measured.measurement
        reason = RejectionReason.WEAKLY_AIMED if row.is_weakly_aimed else REJECTIONS[row.verdict]
        rejection = Rejection(reason, detail)
        return Outcome(measured, detail=detail, log=log, rejection=rejection)
    wrong = Rejection(RejectionReason.ORACLE_BREAKS_TESTS) if tested.broken else None
    log = f"{log}\n{report_of_tests(tested)}"
    return Outcome(measured, detail=f"{detail}; {summary_of_tests(tested)}", log=log, rejection=wrong)


def inputs_of(task: MeasuredTask, tools: MeasurementTools) -> str:
    """Return the fingerprint of everything that samples and verdict depend on; concurrency is no part of it."""
    threads = threads_of(task.walk)
    return fingerprint(
        Stage.MEASUREMENTS,
        task.image.digest,
        task.image.spec.model_dump(mode="json"),
        task.pr.change.patch_sha256,
        (task.environment.suite_sha, task.pr.facts.merge_commit_sha),
        tools.plan.model_dump(mode="json"),
        [tools.plan.rule(unit).model_dump(mode="json") for unit in RandomizationUnit],
        tools.limits.model_dump(mode="json"),
        harness_sha256(),
        frames_sha256(),
        texts_of(task.pr.facts),
        tools.sources(task.pr.facts.repository),
        # discussions without code provide no workload
        *([threads] if shows_code(threads) else []),
    )


def summary_of(measured: Measurement) -> str:
    """Return a line for the ledger: verdict, size, certainty."""
    text = f"{measured.speedup_text} (95 % {measured.low:.2f} to {measured.high:.2f})"
    text += f" over {len(measured.results)} benchmarks, {len(measured.faster)} faster, {len(measured.slower)} slower"
    left_out = UntimedCounts(measured.unsurveyed, measured.undrawn, measured.weak)
    return "; ".join(filter(None, [text, str(left_out), measured.needs]))
