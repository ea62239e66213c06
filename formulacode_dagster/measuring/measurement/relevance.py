"""Relevance of a suite's benchmarks to a patch, and why some cannot be timed."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from formulacode_dagster.building.suites.questions import FAILED, Survey, SurveyedBenchmark
from formulacode_dagster.measuring.workloads.line_cover import Line, covering_first
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.measurement import LEAST_TIME_IN_CHANGE, Arm, BenchmarkFailure, Quantity
from formulacode_dagster.models.reasons import FailureKind, RejectionReason

from .changed_code import ChangedCode, Lines

TIMEABLE = frozenset({"ran", "untraced", "ruled_out"})
SHOWN = 5
NO_TIME = "there was no time to run it once"


@dataclass(frozen=True)
class BenchmarkCandidate:
    """A benchmark that can be timed on the arms it was surveyed on."""

    by_arm: Mapping[Arm, SurveyedBenchmark]
    executes_change: bool | None
    unknown: str = ""
    """Why it is not known whether it executes the change."""
    time_in_change: float | None = None
    """Share of its time in changed functions, on the side with more of it; None if it was not, or cannot be, seen."""

    @property
    def is_weak(self) -> bool:
        """True if the change cannot matter much for its time."""
        return self.time_in_change is not None and self.time_in_change < LEAST_TIME_IN_CHANGE

    @property
    def name(self) -> str:
        """Asv's name, with the parameters."""
        return self.by_arm[Arm.BASE].name

    @property
    def quantity(self) -> Quantity:
        """Metric of the benchmark."""
        return self.by_arm[Arm.BASE].quantity

    def runs_on(self, arm: Arm) -> bool:
        """True if it ran there."""
        return arm in self.by_arm and self.by_arm[arm].outcome == "ran"

    def with_copied_control(self) -> BenchmarkCandidate:
        """True if the control is a copy of the base: a benchmark that ran there runs here, except for caches."""
        base = self.by_arm[Arm.BASE]
        return self if base.cache_folder else replace(self, by_arm={**self.by_arm, Arm.CONTROL: base})

    @property
    def executed(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Changed lines that it executes, by arm and path; of arms without any, nothing."""
        return {str(arm): dict(surveyed.lines) for arm, surveyed in self.by_arm.items() if surveyed.lines}

    @property
    def isolate(self) -> bool:
        """True if each call needs a separate setup: one answer for all arms, or they would time different things."""
        return any(surveyed.isolate for surveyed in self.by_arm.values())

    @property
    def setup_seconds(self) -> float:
        """CPU seconds of its setup on the arm where it takes longest."""
        return max((surveyed.setup_seconds for surveyed in self.by_arm.values()), default=0.0)


@dataclass(frozen=True)
class UntimedCounts:
    """Number of benchmarks of a suite that execute the change, or may, and are not timed."""

    unsurveyed: int = 0
    """There was no time to run them once."""
    undrawn: int = 0
    """They execute it, and are more than are timed."""
    weak: int = 0
    """They execute it, and spend hardly any time in it."""

    @classmethod
    def of(cls, candidates: Sequence[BenchmarkCandidate], selected: Sequence[BenchmarkCandidate]) -> UntimedCounts:
        """Return which of *candidates* are left out if *selected* are timed."""
        names = {candidate.name for candidate in selected}
        left = [each for each in candidates if each.executes_change is True and each.name not in names]
        weak = sum(candidate.is_weak for candidate in left)
        return cls(sum(candidate.unknown == NO_TIME for candidate in candidates), len(left) - weak, weak)

    def __str__(self) -> str:
        """Return a description; empty if there are none."""
        told = [f"{self.unsurveyed} that there was no time to run once"] if self.unsurveyed else []
        told += [f"{self.undrawn} relevant ones that were not drawn"] if self.undrawn else []
        told += [f"{self.weak} that spend hardly any time in the change"] if self.weak else []
        return f"left out: {', '.join(told)}" if told else ""


NOTHING_LEFT_OUT = UntimedCounts()


def comparable(
    base: Survey, oracle: Survey, changed: ChangedCode
) -> tuple[list[BenchmarkCandidate], list[BenchmarkFailure]]:
    """Pair the benchmarks of base and oracle, and list those that fail.

    Raises ItemFailure: `oracle_breaks_benchmarks` when one that runs on the base fails with the oracle,
    `benchmarks_fail` when none runs on both.
    """
    failures = [*_failures(Arm.BASE, base), *_failures(Arm.ORACLE, oracle)]
    on_base = {benchmark.name: benchmark for benchmark in base.benchmarks}
    on_oracle = {benchmark.name: benchmark for benchmark in oracle.benchmarks}
    _raise_if_oracle_breaks(on_base, oracle, changed)
    for name in on_base.keys() ^ on_oracle.keys():
        arm = Arm.ORACLE if name in on_base else Arm.BASE
        failures.append(not_run(name, arm, None))
    candidates = [
        _candidate(benchmark, on_oracle[name], changed)
        for name, benchmark in on_base.items()
        if name in on_oracle and {benchmark.outcome, on_oracle[name].outcome} <= TIMEABLE
    ]
    if not candidates:
        raise ItemFailure(
            FailureKind.BENCHMARKS_FAIL,
            "no benchmark runs on base and oracle",
            why=f"{len(failures)} failures" if failures else "the suite defines no benchmark",
            log_tail="\n".join(
                f"{failure.arm} {failure.benchmark} {failure.kind}: {failure.message}" for failure in failures[:SHOWN]
            ),
        )
    return candidates, failures


def with_surveys(candidate: BenchmarkCandidate, surveys: Mapping[Arm, Survey]) -> BenchmarkCandidate:
    """Return *candidate* with the results of later *surveys*."""
    later = {
        arm: benchmark
        for arm, survey in surveys.items()
        for benchmark in survey.benchmarks
        if benchmark.name == candidate.name
    }
    return replace(candidate, by_arm={**candidate.by_arm, **later}, unknown="")


def completed(candidates: Sequence[BenchmarkCandidate]) -> tuple[list[BenchmarkCandidate], list[BenchmarkFailure]]:
    """The *candidates* that ran on every arm, and why the others did not."""
    ready, failures = [], []
    for candidate in candidates:
        stopped = next((arm for arm in Arm if not candidate.runs_on(arm)), None)
        if stopped is None:
            ready.append(candidate)
            continue
        failures.append(not_run(candidate.name, stopped, candidate.by_arm.get(stopped)))
    return ready, failures


def not_run(name: str, arm: Arm, surveyed: SurveyedBenchmark | None) -> BenchmarkFailure:
    """Return why a benchmark did not run on an arm, from its survey there; without one it is `missing`."""
    if surveyed is None:
        return BenchmarkFailure(benchmark=name, arm=arm, kind="missing", message="not defined on this arm")
    return BenchmarkFailure(benchmark=name, arm=arm, kind=surveyed.outcome, message=surveyed.message)


def disagreeing(base: Survey, oracle: Survey) -> list[str]:
    """Names of the benchmarks that ran in one survey and failed in the other, or were lost there with their module."""
    names: set[str] = set()
    for survey, other in ((base, oracle), (oracle, base)):
        failed = {benchmark.name for benchmark in other.benchmarks if benchmark.outcome in FAILED}
        names |= {
            benchmark.name
            for benchmark in survey.benchmarks
            if benchmark.outcome == "ran"
            and (benchmark.name in failed or not _owners(benchmark).isdisjoint(other.lost))
        }
    return sorted(names)


def joined(surveys: Sequence[Survey]) -> Survey:
    """Return the survey of a suite of which each of *surveys* has a share."""
    return Survey(
        benchmarks=tuple(
            sorted((each for survey in surveys for each in survey.benchmarks), key=lambda each: each.name)
        ),
        lost={name: why for survey in surveys for name, why in survey.lost.items()},
        extensions=tuple(sorted({name for survey in surveys for name in survey.extensions})),
        untimed=tuple(sorted({name for survey in surveys for name in survey.untimed})),
        uninstalled=tuple(sorted({name for survey in surveys for name in survey.uninstalled})),
    )


def may_enter(benchmark: SurveyedBenchmark) -> bool:
    """Return True if a *benchmark* of the base ran a watched line, or might: by a process of its own, or on a retry."""
    is_seen = benchmark.outcome == "ran" and benchmark.traceable
    return bool(benchmark.lines) if is_seen else benchmark.outcome in {"ran", *FAILED} - {"timeout"}


def with_lines(survey: Survey, lines: Lines) -> Survey:
    """Return *survey* as if only *lines* had been watched."""
    kept = []
    for benchmark in survey.benchmarks:
        seen = {path: tuple(at for at in ran if at in lines.get(path, ())) for path, ran in benchmark.lines.items()}
        kept.append(benchmark.model_copy(update={"lines": {path: ran for path, ran in seen.items() if ran}}))
    return survey.model_copy(update={"benchmarks": tuple(kept)})


def with_rest(oracle: Survey, base: Survey, asked: Collection[str]) -> Survey:
    """Return the survey of the *oracle*, where only those *asked* for were run, with the base's other benchmarks."""
    known = {*asked, *(benchmark.name for benchmark in oracle.benchmarks)}
    rest = [
        benchmark.model_copy(update={"outcome": benchmark.outcome if benchmark.outcome == "untraced" else "ruled_out"})
        for benchmark in base.benchmarks
        if benchmark.name not in known
    ]
    return oracle.model_copy(update={"benchmarks": (*oracle.benchmarks, *rest)})


def renewed(survey: Survey, again: Survey) -> Survey:
    """Return *survey* with the results of benchmarks that were run *again*."""
    newer = {benchmark.name: benchmark for benchmark in again.benchmarks}
    kept = [newer.pop(benchmark.name, benchmark) for benchmark in survey.benchmarks]
    return survey.model_copy(update={"benchmarks": (*kept, *newer.values()), "lost": again.lost})


def select(
    candidates: Sequence[BenchmarkCandidate], *, limit: int, seed: int, is_partly_hidden: bool = False
) -> list[BenchmarkCandidate]:
    """Return at most *limit* of those that execute the change: first a cover of it, then spread over the functions.

    Those that spend hardly any time in it are left out, unless there are no others; so are those of which it is not
    known, if the change *is_partly_hidden* from tracing: one line of compiled code may be all that they execute.

    Raises Rejection (`no_relevant_workload`) if none executes the change; ItemFailure if none is known to and some are
    unknown, which are never timed: `survey_unfinished` if there was no time to run them, else `relevance_unknown`.
    """
    if relevant := in_order_of_timing(candidates, limit=limit, seed=seed):
        aimed = [candidate for candidate in relevant if not candidate.is_weak] or relevant
        known = [candidate for candidate in aimed if candidate.time_in_change is not None] if is_partly_hidden else []
        return (known or aimed)[:limit]
    unknown = [candidate for candidate in candidates if candidate.executes_change is None]
    left = sum(candidate.unknown == NO_TIME for candidate in unknown)
    if left:
        raise ItemFailure(
            FailureKind.SURVEY_UNFINISHED,
            f"no time to run {left} of {len(candidates)} benchmarks once, and none of the others executes the change",
            remedy="Another attempt continues; FC_MEASURE_SECONDS is the time for one",
        )
    if unknown:
        raise ItemFailure(
            FailureKind.RELEVANCE_UNKNOWN,
            f"it is unknown whether {len(unknown)} of {len(candidates)} benchmarks execute the change",
            why="; ".join(sorted({candidate.unknown for candidate in unknown})),
            remedy="See the attempts in the log",
            log_tail="\n".join(f"{candidate.name}: {candidate.unknown}" for candidate in unknown[:SHOWN]),
        )
    raise Rejection(
        RejectionReason.NO_RELEVANT_WORKLOAD,
        f"none of {len(candidates)} benchmarks executes a line that the patch changes",
    )


def in_order_of_timing(candidates: Sequence[BenchmarkCandidate], *, limit: int, seed: int) -> list[BenchmarkCandidate]:
    """Return those that execute the change: up to *limit* that cover it, then the others, spread over the functions."""
    relevant = [candidate for candidate in candidates if candidate.executes_change]
    return covering_first(_spread(relevant, seed), _executed_lines, limit)


def _failures(arm: Arm, survey: Survey) -> Iterable[BenchmarkFailure]:
    for name, message in survey.lost.items():
        yield BenchmarkFailure(benchmark=name, arm=arm, kind="import", message=message)
    for benchmark in survey.benchmarks:
        if benchmark.outcome in FAILED:
            yield BenchmarkFailure(benchmark=benchmark.name, arm=arm, kind=benchmark.outcome, message=benchmark.message)


def _raise_if_oracle_breaks(on_base: Mapping[str, SurveyedBenchmark], oracle: Survey, changed: ChangedCode) -> None:
    """Raise if the oracle breaks something that runs on the base, including whole modules.

    The kernel kills by chance what needs nearly all of the memory: that is no fault of a patch that is not executed.
    """
    ran = [benchmark for benchmark in on_base.values() if benchmark.outcome == "ran"]
    names = {benchmark.name for benchmark in ran}
    unrelated = {each.name for each in ran if each.traceable and not each.lines and not changed.untraceable}
    broken = {
        benchmark.name: benchmark.message
        for benchmark in oracle.benchmarks
        if benchmark.outcome in FAILED
        and benchmark.name in names
        and not (benchmark.outcome == "killed" and benchmark.name in unrelated)
    }
    owners = {owner for benchmark in ran for owner in _owners(benchmark)}
    broken |= {name: message for name, message in oracle.lost.items() if name in owners}
    if broken:
        shown = list(broken.items())[:SHOWN]
        raise ItemFailure(
            FailureKind.ORACLE_BREAKS_BENCHMARKS,
            f"{len(broken)} benchmarks or modules work on the base and fail with the author's patch",
            why=", ".join(name for name, _ in shown),
            remedy="Look at the messages: the patch may need an environment that the base does not",
            log_tail="\n".join(f"{name}: {message}" for name, message in shown),
        )


def _owners(benchmark: SurveyedBenchmark) -> frozenset[str]:
    """Group with which it is lost: its module, its class or function."""
    return frozenset({benchmark.module, f"{benchmark.module}.{benchmark.owner or benchmark.attribute}"})


def _candidate(base: SurveyedBenchmark, oracle: SurveyedBenchmark, changed: ChangedCode) -> BenchmarkCandidate:
    by_arm = {Arm.BASE: base, Arm.ORACLE: oracle}
    if base.lines or oracle.lines:
        return BenchmarkCandidate(by_arm, executes_change=True)
    if "untraced" in (base.outcome, oracle.outcome):
        return BenchmarkCandidate(by_arm, None, NO_TIME)
    if "ruled_out" in (base.outcome, oracle.outcome):
        return BenchmarkCandidate(by_arm, executes_change=False)
    if not (base.traceable and oracle.traceable):
        return BenchmarkCandidate(by_arm, None, "it runs its code in a process of its own")
    if changed.untraceable:
        return BenchmarkCandidate(by_arm, None, f"Python cannot trace {', '.join(changed.untraceable)}")
    return BenchmarkCandidate(by_arm, executes_change=False)


def _spread(candidates: Sequence[BenchmarkCandidate], seed: int) -> list[BenchmarkCandidate]:
    """A seeded order in which every benchmark function comes once before any comes twice."""
    generator = random.Random(seed)  # noqa: S311 - a choice, not a secret
    shuffled = generator.sample(list(candidates), len(candidates))
    seen: dict[tuple[str, str, str], int] = {}
    turns = []
    for candidate in shuffled:
        surveyed = candidate.by_arm[Arm.BASE]
        key = (surveyed.module, surveyed.owner, surveyed.attribute)
        seen[key] = seen.get(key, 0) + 1
        turns.append(seen[key])
    return [shuffled[place] for place in sorted(range(len(shuffled)), key=turns.__getitem__)]


def _executed_lines(candidate: BenchmarkCandidate) -> set[Line]:
    return {
        (arm, path, line)
        for arm, by_path in candidate.executed.items()
        for path, executed in by_path.items()
        for line in executed
    }
