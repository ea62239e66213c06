"""Taking the samples: rounds of fresh processes over the arms, until the plan's looks or its time are used up."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from formulacode_dagster.building.suites.questions import (
    Conditions,
    KeptBuild,
    NotTimed,
    ProcessAnswer,
    ProcessSetting,
    Timed,
    TimedBenchmark,
)
from formulacode_dagster.building.suites.remote import PADDING_STEPS, HarnessClient
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import (
    Arm,
    BenchmarkFailure,
    DecisionRule,
    RandomizationUnit,
    RoundConditions,
    Sample,
)

from .failures import UNBUILT, nothing_timed, oracle_breaks, several_machines
from .plan import SamplingPlan
from .relevance import BenchmarkCandidate
from .round_plan import fit, single_calls
from .statistics.verdict import TaskVerdict, judge
from .time_budget import TimeBudget

MakeBuild = Callable[[Arm], KeptBuild]
"""Rebuilds the package of an arm with a random layout."""

MoreSeconds = Callable[[Sequence[BenchmarkCandidate]], float]


def no_more_seconds(_candidates: Sequence[BenchmarkCandidate]) -> float:
    """Return 0."""
    return 0.0


LEAST_ROUNDS = 2
"""Two are needed for a spread."""
UNKNOWN_MACHINE = "unknown"
BLAMELESS = frozenset({"skipped", "no_ratio"})
"""Kinds of not having been sampled that are no fault of the code."""


@dataclass(frozen=True)
class Taken:
    """The samples, the verdict, and the benchmarks that could not be timed."""

    judged: TaskVerdict
    rule: DecisionRule
    look: int
    rounds: int
    failures: tuple[BenchmarkFailure, ...]
    untimed: tuple[str, ...]
    conditions: tuple[RoundConditions, ...]
    machine: str


@dataclass(frozen=True)
class _Process:
    """One interpreter of a round: an arm, and its build."""

    arm: Arm
    build: KeptBuild


class Sampler:
    """Samples of one task. Every decision but the plan's own is made before the first timing is seen."""

    def __init__(
        self,
        remotes: Mapping[Arm, HarnessClient],
        candidates: Sequence[BenchmarkCandidate],
        *,
        plan: SamplingPlan,
        rule: DecisionRule,
        budget: TimeBudget,
        make_build: MakeBuild,
        core: int,
        note: ProgressReporter,
        more_seconds: MoreSeconds = no_more_seconds,
    ) -> None:
        """*core* is the one that processes are kept on, counted from the last.

        If the time ends before a decision, *more_seconds* is asked once how many to add, which must not depend on
        samples.
        """
        self._remotes, self._plan, self._rule, self._budget = remotes, plan, rule, budget
        self._make_build, self._core, self._note, self._more_seconds = make_build, core, note, more_seconds
        self._candidates = list(candidates)
        self._generator = random.Random(plan.seed)  # noqa: S311 - an order, not a secret
        self._seconds = plan.seconds_per_sample
        self._single: frozenset[str] = frozenset()
        self._samples: dict[str, list[Sample]] = {candidate.name: [] for candidate in candidates}
        self._failures: list[BenchmarkFailure] = []
        self._untimed: list[str] = []
        self._conditions: list[RoundConditions] = []
        self._machine = UNKNOWN_MACHINE
        self._processes = 0
        self._is_abreast = False
        self._rounds = 0
        self._repeats = plan.max_repeats
        self._round_seconds = 0.0

    def take(self) -> Taken:
        """Warm up, then take rounds until the rule decides.

        Raises ItemFailure: `oracle_breaks_benchmarks` if a benchmark fails with the oracle twice and nowhere else,
        `benchmarks_fail` if none is left; `several_machines` if processes report different ones; and build failures
        before there are enough rounds.
        """
        self._warm_up()
        judged, look = self._sample()
        self._note(f"{judged.verdict} after {self._rounds} rounds: {judged.speedup:.3g}x")
        return Taken(
            judged,
            self._rule,
            look,
            self._rounds,
            tuple(self._failures),
            tuple(self._untimed),
            tuple(self._conditions),
            self._machine,
        )

    def _sample(self) -> tuple[TaskVerdict, int]:
        for look, at in enumerate(self._rule.looks):
            while self._rounds < at.units:
                if self._rounds >= LEAST_ROUNDS and not self._has_time() and not self._has_more_time(look):
                    self._note("the time is used up")
                    # the end of the time is no look at the samples: the level of the next one is still unspent
                    took = (
                        f"a round took {self._round_seconds:.0f} s, and all may take {self._budget.seconds:g} s, "
                        "which is FC_MEASURE_SECONDS but in a replay"
                    )
                    return cut_short(self._judge(look), took), look
                self._note(f"round {self._rounds + 1} of at most {self._rule.looks[-1].units}")
                try:
                    processes = [_Process(arm, self._make_build(arm)) for arm in Arm]
                except ItemFailure as failure:
                    if failure.kind not in UNBUILT or self._rounds < LEAST_ROUNDS:
                        raise
                    self._note(f"no more rounds, because no further build succeeds: {failure}")
                    # no interim analysis either: build failures are independent of the samples
                    return cut_short(self._judge(look), f"no more could be built: {failure.kind}"), look
                self._round(processes)
            judged = self._judge(look)
            if judged.is_decided:
                break
        return judged, look

    def _has_time(self) -> bool:
        """Return True if another round fits, and its builds may begin."""
        return self._budget.left >= self._round_seconds and self._budget.built < self._plan.max_build_seconds

    def _has_more_time(self, look: int) -> bool:
        """Return True if a task that is undecided at *look* got more time, in which another round fits."""
        ask, self._more_seconds = self._more_seconds, no_more_seconds
        if self._judge(look).is_decided or not (seconds := ask(self._candidates)):
            return False
        self._budget.add(seconds)
        return self._has_time()

    def _judge(self, look: int) -> TaskVerdict:
        traced = {candidate.name: candidate.executes_change for candidate in self._candidates}
        quantities = {candidate.name: candidate.quantity for candidate in self._candidates}
        return judge({name: self._samples[name] for name in traced}, self._rule, look, quantities, traced=traced)

    def _warm_up(self) -> None:
        """Call everything once on every arm, to fill caches and to measure the cost of a round."""
        self._note(f"warming up {len(self._candidates)} benchmarks")
        calls = {candidate.name: 0.0 for candidate in self._candidates}
        start = {arm: _Process(arm, KeptBuild()) for arm in Arm}
        overhead = 0.0
        taken: dict[_Process, dict[str, Timed | NotTimed]] = {}
        for process in start.values():
            answer = self._run(process, self._candidates, ProcessSetting(core=self._core), once=True)
            taken[process] = _by_name(self._candidates, answer)
            for name, sample in taken[process].items():
                calls[name] = max(calls[name], sample.wall)
            overhead = max(overhead, answer.seconds - sum(sample.wall for sample in answer.samples))
        self._mend(taken, ProcessSetting(core=self._core), once=True)
        self._is_abreast = self._plan.at_once and not any(
            isinstance(sample, Timed) and sample.waited for samples in taken.values() for sample in samples.values()
        )
        longest = {
            candidate.name: max(
                sample.value for samples in taken.values() if isinstance(sample := samples[candidate.name], Timed)
            )
            for candidate in self._candidates
        }
        self._single = single_calls(self._candidates, longest, self._plan)
        fitted = fit(self._candidates, calls, self._single, overhead, self._plan, self._rule, seconds=self._budget.left)
        self._candidates, self._untimed, self._seconds = fitted.candidates, fitted.untimed, fitted.seconds
        if self._untimed:
            self._note(f"no time for {', '.join(self._untimed)}")

    def _round(self, processes: Sequence[_Process]) -> None:
        """One sample of every benchmark in every process, under one setting; a disturbed round is taken again."""
        while True:
            # one that is taken again does not make the next one longer
            start = self._budget.spent
            # hash seed, stack and heap are the same for all arms of a round, and differ in the next
            setting = ProcessSetting(
                hash_seed=self._generator.randrange(1, 2**32),
                padding=self._generator.randrange(PADDING_STEPS),
                core=self._core,
            )
            order = self._generator.sample(list(processes), len(processes))
            candidates = self._generator.sample(self._candidates, len(self._candidates))
            groups = [order] if self._is_abreast else [[process] for process in order]
            answers = {
                process: answer for group in groups for process, answer in self._run_abreast(group, candidates, setting)
            }
            conditions = self._conditions_of([[answers[process] for process in group] for group in groups])
            self._conditions.append(conditions)
            if not conditions.disturbed:
                break
            self._repeats -= 1
            self._note(f"disturbed: {conditions.steal:.0%} stolen, {conditions.others:.0%} taken by others; once more")
        taken = {process: _by_name(candidates, answer) for process, answer in answers.items()}
        self._mend(taken, setting)
        first, self._processes = self._processes, self._processes + len(order)
        for place, process in enumerate(order):
            for name, sample in taken[process].items():
                if name in self._samples and isinstance(sample, Timed):
                    self._samples[name].append(
                        Sample(
                            arm=process.arm,
                            build=self._rounds if self._rule.unit is RandomizationUnit.BUILD else 0,
                            objects=process.build.objects,
                            round=self._rounds,
                            order=place,
                            process=first + place,
                            hash_seed=setting.hash_seed,
                            value=sample.value,
                            calls=sample.calls,
                        )
                    )
        self._rounds += 1
        self._round_seconds = max(self._round_seconds, self._budget.spent - start)

    def _run(
        self,
        process: _Process,
        candidates: Sequence[BenchmarkCandidate],
        setting: ProcessSetting,
        *,
        once: bool = False,
    ) -> ProcessAnswer:
        asked = [
            TimedBenchmark(
                candidate.by_arm[process.arm],
                candidate.isolate,
                candidate.setup_seconds,
                once or candidate.name in self._single,
            )
            for candidate in candidates
        ]
        setting = dataclasses.replace(setting, build=process.build.folder)
        return self._remotes[process.arm].time(asked, seconds=self._seconds, setting=setting)

    def _run_abreast(
        self, group: Sequence[_Process], candidates: Sequence[BenchmarkCandidate], setting: ProcessSetting
    ) -> list[tuple[_Process, ProcessAnswer]]:
        """Run them concurrently on one core, so that all meet its slow moments."""
        setting = dataclasses.replace(setting, abreast=len(group))
        with ThreadPoolExecutor(len(group)) as pool:
            answers = pool.map(lambda process: self._run(process, candidates, setting), group)
            return list(zip(group, answers, strict=True))

    def _conditions_of(self, groups: Sequence[Sequence[ProcessAnswer]]) -> RoundConditions:
        told = [conditions for group in groups for conditions in _conditions_of(group)]
        steal, others = (
            max((getattr(conditions, name) for conditions in told), default=0.0) for name in ("steal", "others")
        )
        for machine in (conditions.machine for conditions in told):
            if self._machine not in (UNKNOWN_MACHINE, machine):
                raise several_machines(self._machine, machine)
            self._machine = machine
        return RoundConditions(
            round=self._rounds,
            load=max((conditions.load for conditions in told), default=0.0),
            steal=steal,
            others=others,
            mhz=min((conditions.mhz for conditions in told), default=0.0),
            disturbed=self._repeats > 0 and (steal > self._plan.max_steal or others > self._plan.max_others),
        )

    def _mend(
        self, taken: dict[_Process, dict[str, Timed | NotTimed]], setting: ProcessSetting, *, once: bool = False
    ) -> None:
        """Retry whatever failed on any arm once on every arm, each benchmark in a separate process.

        A benchmark that fails again is dropped on all arms. Raises ItemFailure if it failed only with the oracle,
        twice.
        """
        failed = {
            name for samples in taken.values() for name, sample in samples.items() if isinstance(sample, NotTimed)
        }
        broken: list[BenchmarkFailure] = []
        for candidate in [candidate for candidate in self._candidates if candidate.name in failed]:
            name = candidate.name
            first = {process.arm for process, samples in taken.items() if isinstance(samples[name], NotTimed)}
            self._note(f"{name} failed on {', '.join(sorted(first))}: once more on every arm")
            again = {process: self._run(process, [candidate], setting, once=once).samples[0] for process in taken}
            second = {process.arm: sample for process, sample in again.items() if isinstance(sample, NotTimed)}
            for process, sample in again.items():
                taken[process][name] = sample
            if not second:
                continue
            arm, why = next(iter(second.items()))
            failure = BenchmarkFailure(benchmark=name, arm=arm, kind=why.kind, message=why.message)
            if first == second.keys() == {Arm.ORACLE} and why.kind not in BLAMELESS:
                broken.append(failure)
            self._failures.append(failure)
            self._candidates.remove(candidate)
            del self._samples[name]
        if broken:
            raise oracle_breaks(broken)
        if not self._candidates:
            raise nothing_timed(self._failures)


def cut_short(judged: TaskVerdict, why: str) -> TaskVerdict:
    """Return *judged*, with *why* rounds are missing."""
    if not judged.needs or judged.disturbed:
        return judged
    return dataclasses.replace(judged, needs=f"{judged.needs}; {why}")


def _conditions_of(group: Sequence[ProcessAnswer]) -> list[Conditions]:
    """Return the interference that each process met, without that of its siblings on the core."""
    told = [answer.conditions for answer in group if answer.conditions is not None]
    own = sum(conditions.own for conditions in told)
    return [
        conditions.model_copy(update={"others": max(0.0, conditions.others - (own - conditions.own))})
        for conditions in told
    ]


def _by_name(candidates: Sequence[BenchmarkCandidate], answer: ProcessAnswer) -> dict[str, Timed | NotTimed]:
    return {candidate.name: sample for candidate, sample in zip(candidates, answer.samples, strict=True)}
