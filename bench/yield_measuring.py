"""Result of measuring one pull request in its image: its verdict, and that of its own tests."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import tee

from found_workloads import FoundWorkloads
from session_commands import busy_seconds
from yield_report import CONDITIONS, DONE, Condition, Trial
from yield_sources import ENOUGH, modules_of, say

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.measuring.correctness.compare import compare_tests
from formulacode_dagster.measuring.correctness.summary import summary_of_tests
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.measuring.measurement.measure import (
    MeasurementSettings,
    TaskToMeasure,
    TimedTask,
    WorkloadSources,
    measure_task,
)
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.measuring.measurement.remeasure import measure_again
from formulacode_dagster.measuring.measurement.stage import summary_of
from formulacode_dagster.measuring.measurement.surveyed import Surveyed
from formulacode_dagster.measuring.workloads.documents import Shown, shown_at
from formulacode_dagster.measuring.workloads.suites import other_suites
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import Metric
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.pending import MAX_ATTEMPTS
from formulacode_dagster.releasing.replays.verdict import verdict_of
from formulacode_dagster.sources.git.mirror import Mirror

RUN = "yield"
BROKEN = "broken"
CHANGED = "changed"
HOLD = "hold"


@dataclass(frozen=True)
class Measuring:
    """One built pull request, to be measured and judged as the `measurements` stage does it."""

    engine: Engine
    limits: ResourceLimits
    plan: SamplingPlan
    image: BuiltImage
    mirror: Mirror
    pr: PullRequest
    patch: bytes
    replays: int = 0
    """Repetitions of measurements that are faster and correct, as from their rows."""
    cores: Cores = field(default_factory=Cores)
    """Cores of concurrent measurements."""
    one_core: Engine | None = None
    """The same daemon, with containers limited to one core's time; without it, replays have all cores."""
    elsewhere: Iterable[SuiteFiles] = ()
    """Content of other repositories for this one, read on demand."""

    def measured(self, trial: Trial, first: SuiteFiles) -> Trial:
        """*trial* with its verdict; if that is `faster`, with the results of its tests. Raises as `measure_task`."""
        with ExitStack() as sessions:
            return self._judged(trial, first, sessions)

    def _judged(self, trial: Trial, first: SuiteFiles, sessions: ExitStack) -> Trial:
        started, busy = time.perf_counter(), busy_seconds()
        timed = self._timed(trial.item, first, sessions)
        row, suite = timed.measurement, timed.procedure.suite_files
        names = [result.benchmark for result in row.results]
        trial = replace(
            trial,
            stage=DONE,
            suite=row.suite,
            source=row.provenance.source,
            timed=len(row.results),
            aimed=len(row.results),
            workloads=tuple(names),
            laid=modules_of(suite, names),
            found=FoundWorkloads.of(trial.item, names[:ENOUGH], suite),
            verdict=row.verdict,
            measured=summary_of(row),
            rounds=row.rounds,
            unit=row.rule.unit.value,
            log=timed.log,
        )
        measured, busy = time.perf_counter(), busy_seconds() - busy
        if row.is_faster and not row.returning_other:
            trial = self._tested(trial, timed)
        elif row.returning_other:
            trial = replace(trial, tests=CHANGED, tested=f"returns something else: {', '.join(row.returning_other)}")
        sessions.close()
        tested = time.perf_counter()
        if trial.tests == HOLD:
            trial = replace(
                trial, replays=tuple(self._replayed(timed.procedure, row.metric, n) for n in range(self.replays))
            )
        return replace(
            trial,
            measuring_seconds=round(measured - started, 1),
            measuring_cpu_seconds=round(busy, 1),
            testing_seconds=round(tested - measured, 1),
        )

    def _timed(self, item: str, first: SuiteFiles, sessions: ExitStack) -> TimedTask:
        """Measure it, in as many attempts as a run of a month makes: each continues the surveys of the one before."""
        found: dict[str, frozenset[str]] = {}
        left = self.elsewhere
        for attempt in range(1, MAX_ATTEMPTS):
            elsewhere, left = tee(left)
            try:
                return self._attempt(item, first, elsewhere, Surveyed(dict(found), found.__setitem__), sessions)
            except ItemFailure as failure:
                if failure.kind is not FailureKind.SURVEY_UNFINISHED:
                    raise
                say(f"{item}: attempt {attempt}: {failure}")
                sessions.close()
        return self._attempt(item, first, left, Surveyed(found), sessions)

    def _attempt(
        self, item: str, first: SuiteFiles, elsewhere: Iterable[SuiteFiles], surveyed: Surveyed, sessions: ExitStack
    ) -> TimedTask:
        workloads = WorkloadSources(
            suite=first,
            later=lambda names: other_suites(self.mirror, self.pr, self.image.spec, names, elsewhere=elsewhere),
            shown=self._shown,
        )
        return measure_task(
            self.engine,
            TaskToMeasure(self.pr, self.patch, self.image, RUN, sessions),
            workloads,
            MeasurementSettings(self.plan, self.limits, self.cores),
            surveyed=surveyed,
            progress=lambda line: say(f"{item}: {line}"),
        )

    def _replayed(self, procedure: Procedure, metric: Metric, number: int) -> str:
        """Result of measuring it again, in a separate process and with separate randomness, under its condition."""
        seed = zlib.crc32(f"{self.image.spec.task_id} {number}".encode())
        condition = CONDITIONS[number % len(CONDITIONS)]
        engine = self.one_core if self.one_core and condition is Condition.ONE_CORE else self.engine
        try:
            with busy_process() if condition is Condition.BUSY else nullcontext():
                measured, _ = measure_again(
                    engine,
                    self.image,
                    Procedure.parse(procedure.to_json(), self.image.spec.task_id),
                    patch=self.patch,
                    seed=seed,
                    run_id=RUN,
                    cores=self.cores,
                )
        except ItemFailure as failure:
            return failure.kind
        verdict, _ = verdict_of(measured, metric)
        told = f"{self.image.spec.task_id}, {condition}: {verdict}, {summary_of(measured)}"
        say(told)
        return verdict.value

    def _shown(self, names: Collection[str]) -> Shown:
        folder = self.image.spec.benchmark_dir
        return shown_at(self.mirror, self.pr.change.base_sha, names, benchmark_dir=folder)

    def _tested(self, trial: Trial, timed: TimedTask) -> Trial:
        try:
            tested = compare_tests(
                self.engine,
                self.image,
                patch=self.patch,
                limits=self.limits,
                run_id=RUN,
                hidden=timed.hidden,
                oracle=timed.oracle,
            )
        except ItemFailure as failure:
            return replace(trial, tests=failure.kind, tested=str(failure))
        return replace(trial, tests=BROKEN if tested.broken else HOLD, tested=summary_of_tests(tested))


@contextmanager
def busy_process() -> Iterator[None]:
    """A process that never waits and uses idle time of the cores, as long as the block."""
    spinning = subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()
