"""What the `measurements` stage does: the benchmarks of each image timed, and the tests of what is faster run.

One task is worked on at a time, unless told otherwise: nothing of ours runs beside a timing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from formulacode_dagster.building.engines.protocol import Engine, keeps
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.measuring.correctness.compare import compare_tests
from formulacode_dagster.measuring.correctness.summary import report_of_tests, summary_of_tests
from formulacode_dagster.measuring.workloads.documents import Shown, shown_at, threads_of
from formulacode_dagster.measuring.workloads.elsewhere import candidates_for, suites_elsewhere
from formulacode_dagster.measuring.workloads.laying import frames_sha256
from formulacode_dagster.measuring.workloads.shown_code import shows_code
from formulacode_dagster.measuring.workloads.snippets import texts_of
from formulacode_dagster.measuring.workloads.suites import other_suites
from formulacode_dagster.measuring.workloads.written import WRITER_VERSION, Writer
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.measurement import Measurement, Occasion, Unit, Verdict
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.pending import is_last_attempt
from formulacode_dagster.operating.runner.progress import listener
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem, require_reason
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS, IMAGES, PROBLEM_STATEMENTS, PullRequestKey
from formulacode_dagster.operating.store.ledger import entries_of
from formulacode_dagster.operating.store.measurements import last_attempt, read_surveys, save_survey
from formulacode_dagster.operating.store.pull_requests import done_in, patch_of
from formulacode_dagster.operating.store.spending import Spent, book_call, spending_of
from formulacode_dagster.sources.git.mirror import MirrorCache

from .asking import AskedFromThread, WriterInUse, with_cost
from .cores import Cores
from .keeping import Measured, keep, save, untested
from .measure import TimedTask, measure_task
from .plan import SamplingPlan
from .procedure import harness_sha256
from .relevance import LeftOut
from .surveyed import Surveyed

REJECTIONS = {
    Verdict.UNCHANGED: RejectionReason.NO_SPEEDUP,
    Verdict.SLOWER: RejectionReason.SLOWER,
    Verdict.TRADE_OFF: RejectionReason.TRADE_OFF,
    Verdict.INCONCLUSIVE: RejectionReason.INCONCLUSIVE,
}
"""What the others end with: only a task that is faster goes on."""


UNAIMED: frozenset[str] = frozenset(
    {
        RejectionReason.NO_RELEVANT_WORKLOAD,
        FailureKind.BENCHMARKS_FAIL,
        FailureKind.RELEVANCE_UNKNOWN,
        FailureKind.SURVEY_UNFINISHED,
    }
)
"""What a task ends with for which nothing was found to time."""


@dataclass(frozen=True)
class MeasuredTask:
    """What is measured of one pull request."""

    pr: PullRequest
    image: BuiltImage
    environment: Environment


def work_item(task: MeasuredTask, inputs: str, engine: Engine) -> WorkItem[MeasuredTask]:
    """*task* as runs share it: where its image is, by the one that measures others above the same environment."""
    layer = task.image.tiers[-2].tag
    return WorkItem(task.pr.item, inputs, task, shared_with=layer, is_here=keeps(engine, task.image))


@dataclass(frozen=True)
class Measurements:
    """The measurements of one run of the stage."""

    run: StageRun
    engine: Engine
    cache: MirrorCache
    plan: SamplingPlan
    limits: ResourceLimits
    at_once: int = 1
    """Tasks built, timed and tested at the same time: more than one disturb each other."""
    cores: Cores = field(default_factory=Cores)
    suite_repositories: Sequence[str] = ()
    """Repositories that may hold a suite for others."""
    writer: WriterInUse | None = None
    """Opens the model that writes benchmarks where nothing else executes a change, if there is one."""

    async def measure_month(self) -> StageSummary:
        """Measure what is pending of the month; raises as `run_items`, and as `require_reason`."""
        require_reason(self.run.options)
        if not self.run.options.dry_run:
            self.engine.clean()
        with self.run.database.transaction() as connection:
            prs = done_in(connection, self.run.month, Stage.IMAGES)
            images = IMAGES.read_keys(connection, self.run.month, [pr.key for pr in prs])
            environments = ENVIRONMENTS.read_keys(connection, self.run.month, [pr.key for pr in prs])
            spent = Cost.total(spending_of(connection, self.run.month).values())
            ended = {entry.item: entry for entry in entries_of(connection, self.run.month, self.run.stage)}
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(self.writer(spent, self._book)) if self.writer else None
            writer = (model.name, WRITER_VERSION) if model else ()
            items = [
                work_item(task, inputs_of(task, self.plan, self.limits, sources), self.engine)
                for pr in longest_build_first(prs, images)
                for task in [MeasuredTask(pr, images[pr.key], environments[pr.key])]
                for sources in [(*candidates_for(pr.facts.repository, self.suite_repositories), *writer)]
            ]
            loop = asyncio.get_running_loop()

            def measure(item: WorkItem[MeasuredTask]) -> Outcome[Measured]:
                goes_on = not is_last_attempt(item, ended.get(item.name))
                if model is None:
                    return self.measure(item, goes_on=goes_on)
                asked = AskedFromThread(model, loop)
                return with_cost(asked, lambda: self.measure(item, asked, goes_on=goes_on))

            redo = self._with_new_comments(prs, list(ended.values()))
            return await run_items(self.run, items, in_thread(measure), save, concurrency=self.at_once, redo=redo)

    def _with_new_comments(self, prs: Sequence[PullRequest], ended: Sequence[LedgerEntry]) -> set[str]:
        """Those of *prs* that are to be searched again: since they *ended*, comments that show code were stored."""
        with self.run.database.transaction() as connection:
            items = restated(ended, entries_of(connection, self.run.month, Stage.PROBLEM_STATEMENTS))
            stated = PROBLEM_STATEMENTS.read_keys(connection, self.run.month, [p.key for p in prs if p.item in items])
        return {pr.item for pr in prs if pr.key in stated and shows_code(threads_of(stated[pr.key].walk))}

    def _book(self, cost: Cost) -> Cost:
        with self.run.database.transaction() as connection:
            return book_call(connection, Spent(self.run.month, self.run.stage, self.run.run_id, cost))

    def measure(
        self, item: WorkItem[MeasuredTask], writer: Writer | None = None, *, goes_on: bool = False
    ) -> Outcome[Measured]:
        """Time the base of *item* against its oracle, and run the tests of both: rejected unless faster and right.

        What a survey leaves open another attempt finds out, if it *goes_on*; else other sources are tried now. What an
        attempt before timed and could not test is not timed again, unless it is forced.

        Raises as `measure_task` and `compare_tests`; what was timed by then is kept.
        """
        pr, image = item.value.pr, item.value.image
        with self.run.database.transaction() as connection:
            patch = patch_of(connection, pr)
            before = last_attempt(connection, self.run.month, pr.key)
            timed_before = untested(connection, self.run.month, pr.key, item.inputs)
            stated = PROBLEM_STATEMENTS.read_keys(connection, self.run.month, [pr.key]).get(pr.key)
        note = partial(_note, item.name)
        if timed_before is not None and not self.run.options.force:
            log = f"{_told(timed_before.measurement)} was kept, and is not taken again"
            note(log)
            return self._tested(item, timed_before, patch, log)
        mirror = self.cache.ensure(pr.facts.repository, commits=(pr.facts.merge_commit_sha,))
        folder = image.spec.benchmark_dir
        options = self.run.options
        occasion = Occasion.FORCED if options.force else Occasion.CHANGED if before else Occasion.FIRST
        why = {"occasion": occasion, "reason": options.reason if options.force else ""}

        def kept(timed: TimedTask) -> Measured:
            known = {**why, "inputs": item.inputs, "run_id": self.run.run_id, "compiled": timed.hidden}
            row = timed.measurement.model_copy(update=known)
            is_task = row.is_faster and not row.returning_other
            with self.run.database.transaction() as connection:
                measured = keep(connection, Measured(row, procedure=timed.procedure if is_task else None))
            note(f"{_told(measured.measurement)} is kept")
            return measured

        def shown(names: Collection[str]) -> Shown:
            texts = shown_at(mirror, pr.change.base_sha, names, benchmark_dir=folder)
            return replace(texts, threads=threads_of(stated.walk if stated else None))

        # read when it is asked for: a task with a suite of its own needs no other
        elsewhere = suites_elsewhere(self.cache, self.suite_repositories, pr, folder, note)
        timed = measure_task(
            self.engine,
            image,
            pr=pr,
            patch=patch,
            suite=first_suite(mirror, pr, folder, suite_sha=item.value.environment.suite_sha),
            later=lambda names: other_suites(mirror, pr, image.spec, names, elsewhere=elsewhere),
            shown=shown,
            plan=self.plan,
            limits=self.limits,
            run_id=self.run.run_id,
            writer=writer,
            surveyed=self._surveyed(item, goes_on=goes_on),
            cores=self.cores,
            keep=kept,
            progress=note,
        )
        measured = kept(timed)
        if not measured.measurement.is_faster or measured.measurement.returning_other:
            return outcome_of(measured, timed.log)
        return self._tested(item, measured, patch, timed.log)

    def _tested(self, item: WorkItem[MeasuredTask], measured: Measured, patch: bytes, log: str) -> Outcome[Measured]:
        """Run the tests of both sides of *item*, which was *measured*; raises as `compare_tests`."""
        _note(item.name, "running the repository's own tests on both sides")
        image, run_id, compiled = item.value.image, self.run.run_id, measured.measurement.compiled
        try:
            with self.cores.building():
                tested = compare_tests(
                    self.engine, image, patch=patch, limits=self.limits, run_id=run_id, hidden=compiled
                )
        except ItemFailure as failure:
            failure.log = "\n".join(filter(None, [log, str(failure), failure.log or failure.log_tail]))
            raise
        return outcome_of(replace(measured, correctness=tested), log)

    def _surveyed(self, item: WorkItem[MeasuredTask], *, goes_on: bool) -> Surveyed:
        """What earlier surveys of *item* ruled out, kept beyond this run."""
        key, database = item.value.pr.key, self.run.database

        def keep(suite: str, names: frozenset[str]) -> None:
            with database.transaction() as connection:
                save_survey(connection, self.run.month, key, item.inputs, suite=suite, ruled_out=names)

        with database.transaction() as connection:
            return Surveyed(read_surveys(connection, self.run.month, key, item.inputs), keep, goes_on)


def _note(item: str, line: str) -> None:
    listener().note(Stage.MEASUREMENTS, f"{item}: {line}")


def _told(row: Measurement) -> str:
    return f"measurement {row.attempt} ({row.verdict}, {row.speedup_text})"


def longest_build_first(prs: Sequence[PullRequest], images: Mapping[PullRequestKey, BuiltImage]) -> list[PullRequest]:
    """What takes long to build is built several times an arm: begun last, it would be waited for alone."""
    return sorted(prs, key=lambda pr: -images[pr.key].tiers[-1].seconds)


def restated(ended: Sequence[LedgerEntry], stated: Sequence[LedgerEntry]) -> set[str]:
    """Items that *ended* for want of a workload, and of which a statement was *stated* after that had begun.

    The statement brings comments, and need not be there when a task is measured: as an input, it would have whatever
    was measured before it measured anew.
    """
    made = {entry.item: entry.finished_at for entry in stated if entry.state is ItemState.DONE and entry.finished_at}
    return {
        entry.item
        for entry in ended
        if entry.reason in UNAIMED
        and entry.finished_at
        and entry.item in made
        and made[entry.item] > entry.finished_at - timedelta(seconds=entry.cost.seconds)
    }


def outcome_of(measured: Measured, log: str) -> Outcome[Measured]:
    """How a pull request ends the stage: done when it is faster and right, with all that was found in any case."""
    detail, tested = summary_of(measured.measurement), measured.correctness
    if others := measured.measurement.returning_other:
        detail = f"{detail}; with the author's patch {', '.join(others)} returns something else"
        rejection = Rejection(RejectionReason.ORACLE_CHANGES_RESULTS, detail)
        return Outcome(measured, detail=detail, log=log, rejection=rejection)
    if tested is None:
        rejection = Rejection(REJECTIONS[measured.measurement.verdict], detail)
        return Outcome(measured, detail=detail, log=log, rejection=rejection)
    wrong = Rejection(RejectionReason.ORACLE_BREAKS_TESTS) if tested.broken else None
    log = f"{log}\n{report_of_tests(tested)}"
    return Outcome(measured, detail=f"{detail}; {summary_of_tests(tested)}", log=log, rejection=wrong)


def inputs_of(task: MeasuredTask, plan: SamplingPlan, limits: ResourceLimits, sources: Sequence[str] = ()) -> str:
    """Everything the samples and their verdict depend on; whether tasks are timed side by side is no part of it.

    *sources* are repositories of suites for others, and the model that writes benchmarks, as far as any may be asked.
    """
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
        frames_sha256(),
        texts_of(task.pr.facts),
        tuple(sources),
    )


def summary_of(measured: Measurement) -> str:
    """One line for the ledger: what it is, by how much, and how sure that is."""
    text = f"{measured.speedup_text} (95 % {measured.low:.2f} to {measured.high:.2f})"
    text += f" over {len(measured.results)} benchmarks, {len(measured.faster)} faster, {len(measured.slower)} slower"
    left_out = LeftOut(measured.unsurveyed, measured.undrawn)
    return "; ".join(filter(None, [text, str(left_out), measured.needs]))
