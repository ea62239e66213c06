"""Where the base spends its time in the timed benchmarks, and how many instructions their calls take on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from formulacode_dagster.building.engines.callgrind import Callgrind
from formulacode_dagster.building.suites.questions import SurveyedBenchmark
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import (
    LEAST_TIME_IN_CHANGE,
    Arm,
    BaseProfile,
    InstructionCount,
    Metric,
    instructions_ratio,
)

from .changed_code import ChangedCode
from .log import Log
from .plan import SamplingPlan
from .relevance import BenchmarkCandidate
from .time_budget import TimeBudget

PROFILE_SECONDS = 120.0
SHARE_SECONDS = 0.3
"""Seconds of a benchmark in which its stacks are looked at: a look every two milliseconds."""
CLEARLY_IN_CHANGE = 0.2
"""Share of the time in the change for which a third of that is enough: fifty looks tell it from hardly any."""
LEAST_SECONDS = 4.0
"""Seconds for an arm below which hardly any count would end: starting takes that long."""
LESS_WORK = 1.1
"""Ratio of instructions from which an undecided task gets more time."""
COMPARED = (Arm.BASE, Arm.ORACLE)


def profile_base(base: HarnessClient, benchmarks: Sequence[SurveyedBenchmark], log: Log) -> BaseProfile | None:
    """Calls of each of *benchmarks* at the *base* under the profiler, and their sources.

    A benchmark that fails under the profiler has no functions. None if the harness itself fails: the samples are taken
    by then and remain valid.
    """
    log(f"profiling the base in {len(benchmarks)} benchmarks")
    try:
        return base.profile(benchmarks, budget=PROFILE_SECONDS)
    except ItemFailure as failure:
        log.keep(f"no profile of the base: {failure}")
        return None


def with_time_in_change(
    candidates: Sequence[BenchmarkCandidate],
    changed: ChangedCode,
    remotes: Mapping[Arm, HarnessClient],
    budget: float,
    log: Log,
) -> list[BenchmarkCandidate]:
    """Return *candidates* with the share of their time in changed functions, where *budget* seconds an arm suffice.

    The base is looked at first, and with the patch those that spend hardly any time in the change there. Nothing is
    known of compiled code, other metrics, other threads and processes, and if all that changed there is new. If some of
    the change cannot be traced, a little time in the rest is none that is known.
    """
    if not changed.spans(Arm.BASE):
        return [*candidates]
    shares: dict[str, float | None] = {
        each.name: 0.0 for each in candidates if each.quantity.metric is Metric.TIME and each.executed
    }
    for arm in COMPARED:
        asked = [each for each in candidates if _is_little(shares.get(each.name))]
        if not asked:
            break
        log(f"looking where {len(asked)} benchmarks spend their time on the {arm}")
        try:
            stacks = remotes[arm].stacks(
                [each.by_arm[arm] for each in asked],
                seconds=SHARE_SECONDS,
                budget=budget,
                within=changed.spans(arm),
                enough=CLEARLY_IN_CHANGE,
            )
        except ItemFailure as failure:
            log.keep(f"it is not known where benchmarks spend their time on the {arm}: {failure}")
            stacks = {}
        for each in asked:
            told = stacks[each.name].share_inside if each.name in stacks else None
            shares[each.name] = None if told is None else max(told, shares[each.name] or 0.0)
    if changed.untraceable:
        shares = {name: None if _is_little(share) else share for name, share in shares.items()}
    return [replace(candidate, time_in_change=shares.get(candidate.name)) for candidate in candidates]


def _is_little(share: float | None) -> bool:
    return share is not None and share < LEAST_TIME_IN_CHANGE


def reached_by(candidates: Sequence[BenchmarkCandidate], changed: ChangedCode) -> tuple[float | None, tuple[str, ...]]:
    """Share of the changed functions of which *candidates* execute a changed line, and names of the others.

    Compiled code counts as one more function where a candidate is seen to execute it: where one executes Python of the
    change, it is not known. None if there are no functions that can be traced.
    """
    executed = {
        (arm, path, line)
        for candidate in candidates
        for arm, surveyed in candidate.by_arm.items()
        for path, lines in surveyed.lines.items()
        for line in lines
    }
    unreached = [
        function.name
        for function in changed.functions
        if executed.isdisjoint(
            (arm, path, line)
            for arm, by_path in function.lines.items()
            for path, lines in by_path.items()
            for line in lines
        )
    ]
    if not changed.functions:
        return None, ()
    runs_compiled = any(candidate.executes_change and not candidate.executed for candidate in candidates)
    return round(1 - len(unreached) / (len(changed.functions) + runs_compiled), 4), tuple(unreached)


class InstructionCounter:
    """Counts the instructions of a task's benchmarks, each once, in a share of the time of its measurement.

    Nothing but more time for samples depends on it: what cannot be counted has a reason instead.
    """

    def __init__(self, remotes: Mapping[Arm, HarnessClient], plan: SamplingPlan, budget: TimeBudget, log: Log) -> None:
        self._remotes, self._plan, self._budget, self._log = remotes, plan, budget, log
        self._counts: dict[str, InstructionCount] = {}

    def count(self, candidates: Sequence[BenchmarkCandidate]) -> dict[str, InstructionCount]:
        """Return instructions of a call of each of *candidates*, at the base and with the patch."""
        if missing := [each for each in candidates if each.name not in self._counts]:
            with self._budget.paused():
                self._counts |= self._counted(missing)
        return {each.name: self._counts[each.name] for each in candidates}

    def more_seconds(self, candidates: Sequence[BenchmarkCandidate]) -> float:
        """Return seconds to add for the samples of undecided *candidates*: some if they clearly take less work."""
        ratio = instructions_ratio(self.count(candidates).values())
        if ratio is None or ratio < LESS_WORK:
            return 0.0
        self._log(f"it takes {ratio:.2f} times fewer instructions: more rounds")
        return self._plan.more_share * self._plan.max_seconds

    def _counted(self, candidates: Sequence[BenchmarkCandidate]) -> dict[str, InstructionCount]:
        # both arms at once, on a core each
        seconds = self._plan.instructions_share * self._budget.spent / len(COMPARED)
        tool = Callgrind.find()
        if tool is None or seconds < LEAST_SECONDS:
            why = "no time" if tool else "valgrind is not installed"
            self._log.keep(f"no instructions are counted: {why}")
            return {each.name: InstructionCount(not_counted=why) for each in candidates}
        self._log(f"counting the instructions of {len(candidates)} benchmarks, {seconds:.0f} s at most")

        def counted(arm: Arm) -> dict[str, int | str]:
            try:
                return self._remotes[arm].count([each.by_arm[arm] for each in candidates], tool, budget=seconds)
            except ItemFailure as failure:
                return dict.fromkeys((each.name for each in candidates), str(failure))

        with ThreadPoolExecutor(len(COMPARED)) as pool:
            base, oracle = pool.map(counted, COMPARED)
        counts = {each.name: _count(base[each.name], oracle[each.name]) for each in candidates}
        for name, count in counts.items():
            self._log.keep(f"instructions of {name}: {count.base}, {count.oracle} with the patch {count.not_counted}")
        return counts


def _count(base: int | str, oracle: int | str) -> InstructionCount:
    told = zip(COMPARED, (base, oracle), strict=True)
    return InstructionCount(
        base=base if isinstance(base, int) else None,
        oracle=oracle if isinstance(oracle, int) else None,
        not_counted="; ".join(f"{why} on the {arm}" for arm, why in told if isinstance(why, str)),
    )
