"""Selection of the suite, and of the benchmarks in it that are relevant to a change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.suites.overlays import NO_SUITE, SuiteFiles
from formulacode_dagster.building.suites.questions import Survey
from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient
from formulacode_dagster.measuring.workloads.documents import Shown
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import LEAST_REACHED, LEAST_TIME_IN_CHANGE, Arm, BenchmarkFailure, Metric
from formulacode_dagster.models.reasons import FailureKind, RejectionReason

from .changed_code import ChangedCode, Lines, changed_code
from .compiled_lines import CompiledLines
from .failures import nothing_timed
from .import_filter import still_ruled_out
from .log import Log
from .patch import FileChange, changes_no_compiled_code
from .plan import SamplingPlan
from .profile import reached_by, with_time_in_change
from .relevance import (
    NO_TIME,
    NOTHING_LEFT_OUT,
    BenchmarkCandidate,
    UntimedCounts,
    comparable,
    completed,
    disagreeing,
    in_order_of_timing,
    joined,
    may_enter,
    renewed,
    select,
    with_lines,
    with_rest,
    with_surveys,
)
from .surveyed import Surveyed
from .time_budget import TimeBudget

LOOKED_AT = 2
"""Multiple of the benchmarks that may be timed, of which it is seen where they spend their time."""
TRIES = 2
"""Time limit of running a benchmark once on an arm, in seconds."""
TELLS_NOTHING = frozenset({FailureKind.BENCHMARKS_FAIL, FailureKind.RELEVANCE_UNKNOWN})
"""Failures that another suite may spare a task."""
UNFINISHED = frozenset({FailureKind.SURVEY_UNFINISHED, FailureKind.TIMEOUT})
"""Failures that another suite may spare a task, too; without one, another attempt continues."""
SEARCH_SHARE = 0.5
"""Share of a task's time after which no further survey of a suite begins: the samples need the rest."""
LEAST_SHARE = 0.25
"""Share of a task's time without which no samples are begun, since another attempt has all of it."""
MOSTLY_IN_CHANGE = 0.5
"""Share of its time in the change from which a benchmark is about the change, however few functions it executes."""
NOTHING_FOUND = "the repository has no suite, and no other workload executes the change"
WEAK = f"its benchmarks spend less than {LEAST_TIME_IN_CHANGE:.0%} of their time in it"
UNKNOWN = f"of none of its benchmarks it is known that it spends {LEAST_TIME_IN_CHANGE:.0%} of its time in it"
NOTHING_ELSE = "no other workload executes the change"

LaterSuites = Callable[[Collection[str]], Iterable[SuiteFiles]]
"""Returns suites of later commits for the names of changed code."""
ShownAtBase = Callable[[Collection[str]], Shown]
"""Returns documents and benchmark scripts of the base for the names of changed code."""
OtherSuites = Callable[[ChangedCode], Iterable[SuiteFiles]]
"""Returns suites other than the first for a change."""


def no_later_suites(_names: Collection[str]) -> Iterable[SuiteFiles]:
    """No further suite."""
    return ()


def nothing_shown(_names: Collection[str]) -> Shown:
    """No text: only code is considered."""
    return Shown()


@dataclass(frozen=True)
class Choice:
    """The selected benchmarks."""

    suite: SuiteFiles
    candidates: list[BenchmarkCandidate]
    failures: list[BenchmarkFailure]
    changed: ChangedCode
    left_out: UntimedCounts = NOTHING_LEFT_OUT

    @property
    def is_weak(self) -> bool:
        """True if none of them spends much of its time in the change: none of those that measure time, if all of these
        are left out for that, since of the others it is not seen.
        """
        if self.left_out.weak and all(candidate.quantity.metric is not Metric.TIME for candidate in self.candidates):
            return True
        return all(candidate.is_weak for candidate in self.candidates)

    @property
    def is_aimed(self) -> bool:
        """True unless all of them are weak, or may be, since time in the compiled part of a change is not seen."""
        if self.is_weak or not (self.changed.untraceable and self.changed.spans(Arm.BASE)):
            return not self.is_weak
        return any(candidate.time_in_change is not None for candidate in self.candidates)

    @cached_property
    def reached(self) -> tuple[float | None, tuple[str, ...]]:
        """See `reached_by`."""
        return reached_by(self.candidates, self.changed)

    @property
    def lacks(self) -> str:
        """Reason to look for another suite; `` if there is none."""
        share, _ = self.reached
        if self.is_weak:
            return WEAK
        if any((candidate.time_in_change or 0.0) >= MOSTLY_IN_CHANGE for candidate in self.candidates):
            return ""
        if share is not None and share < LEAST_REACHED:
            return f"its benchmarks execute {share:.0%} of the changed functions"
        return "" if self.is_aimed else UNKNOWN

    def is_better_than(self, other: Choice) -> bool:
        """Return True if it is aimed and *other* is not, or executes a larger share of the change."""
        return self._rank > other._rank

    @property
    def _rank(self) -> tuple[bool, bool, float]:
        return not self.is_weak, self.is_aimed, 0.0 if self.is_weak else self.reached[0] or 0.0


@dataclass(frozen=True)
class Chooser:
    """Selects the suite and the benchmarks in it that are relevant to the change."""

    remotes: Mapping[Arm, HarnessClient]
    files: Sequence[FileChange]
    sources: Mapping[Arm, Mapping[str, bytes]]
    compiled: CompiledLines
    surveyed: Surveyed
    benchmark_dir: str
    limits: ResourceLimits
    plan: SamplingPlan
    budget: TimeBudget
    log: Log
    extensions: set[str] = field(default_factory=set)
    """Compiled modules loaded by suites: Python may be compiled into one, which tracing does not show."""
    tried: list[tuple[SuiteFiles, list[BenchmarkCandidate]]] = field(default_factory=list)
    """Surveys of suites that were not relevant to the change."""
    seen: dict[str, tuple[frozenset[str], dict[tuple[Arm, str], BenchmarkFailure]]] = field(default_factory=dict)
    """Benchmarks that do not execute the change, or failed, by their suite: a survey that goes on leaves them out."""
    turn: Turn = nullcontext
    """Holds off other timings while benchmarks are run for selection or others are searched."""

    def choose(self, suite: SuiteFiles, others: OtherSuites) -> Choice:
        """The suite, its benchmarks to time, each seen to run on every arm, and those that fail.

        Raises the failure of the first suite if no later one does better; Rejection (`no_relevant_workload`) without a
        first suite and any result. After a survey that ran out of time the next suite is tried; if none does better, it
        goes on as long as there is any time, and that failure is raised in the end. Benchmarks that spend hardly any
        time in the change are taken only if nothing else is found; for those that execute a small share of it, and
        spend little time there, other suites are tried, and the one with the largest share is taken.
        """
        unfinished: dict[str, tuple[SuiteFiles, ItemFailure]] = {}
        best: Choice | None = None
        ended: Rejection | ItemFailure = Rejection(RejectionReason.NO_RELEVANT_WORKLOAD, NOTHING_FOUND)
        try:
            if suite is not NO_SUITE:
                best = self._select(suite)
                if not best.lacks:
                    return best
        except (Rejection, ItemFailure) as end:
            if isinstance(end, ItemFailure) and end.kind not in TELLS_NOTHING:
                if end.kind not in UNFINISHED:
                    raise
                unfinished[suite.sha256] = (suite, end)
            ended = end
        self._log_short_of(suite, best.lacks if best else ended)
        self._restore(suite)
        for other in self.budget.paused_between(others(self._changed(sorted(self.extensions))), self.turn):
            if best is not None and not best.is_weak and self.budget.left < SEARCH_SHARE * self.budget.seconds:
                break
            if suite.sha256 == other.sha256:
                self.log(f"the suite of the {other.name} is the same")
                continue
            self.log(f"trying the suite of the {other.name}")
            known = self._known(other)
            self._install(other.files or {})
            try:
                choice = self._select(other, known)
                if not choice.lacks:
                    return choice
                self._log_short_of(other, choice.lacks)
                if best is None or choice.is_better_than(best):
                    best = choice
            except (Rejection, ItemFailure) as end:
                if isinstance(end, ItemFailure) and end.kind is FailureKind.SURVEY_UNFINISHED:
                    unfinished[other.sha256] = (other, end)
                self._log_short_of(other, end)
            self._restore(other)
        if best is not None:
            best = self._with_more_seen(best)
            self.log(f"nothing is aimed better than the suite of the {best.suite.name}")
            if best.suite.files is not None:
                self._install(best.suite.files)
            return best
        for late, why in list(unfinished.values()):
            if why.kind is not FailureKind.SURVEY_UNFINISHED:
                continue
            self.log(f"going on with the suite of the {late.name}")
            if late.files is not None:
                self._install(late.files)
            try:
                choice = self._select(late, self._known(late), reserve=0.0)
                if self.budget.left >= LEAST_SHARE * self.budget.seconds:
                    return choice
                self.log("what executes the change was found too late to be timed: another attempt finds it at once")
                break
            except (Rejection, ItemFailure) as end:
                self._log_short_of(late, end)
                ended = end if ended is why else ended
                if isinstance(end, ItemFailure) and end.kind in UNFINISHED:
                    unfinished[late.sha256] = (late, end)
                else:
                    del unfinished[late.sha256]
            self._restore(late)
        raise ended if not unfinished else _with_the_rest(next(iter(unfinished.values()))[1], ended)

    def _with_more_seen(self, best: Choice) -> Choice:
        """Continue the survey that *best* is from, of which some benchmarks were not run, as long as it lacks aim.

        Raises ItemFailure if what it runs now shows a fault of the patch, as the first survey would have.
        """
        left = best.left_out.unsurveyed
        while best.lacks and left and self.budget.left >= SEARCH_SHARE * self.budget.seconds:
            self.log(f"going on with the suite of the {best.suite.name}, of which {left} benchmarks were not run")
            if best.suite.files is not None:
                self._install(best.suite.files)
            try:
                further = self._select(best.suite, self._known(best.suite))
            except (Rejection, ItemFailure) as end:
                if isinstance(end, ItemFailure) and end.kind not in TELLS_NOTHING | UNFINISHED:
                    raise
                self._log_short_of(best.suite, end)
                break
            if further.left_out.unsurveyed >= left:
                break
            left = further.left_out.unsurveyed
            best = best if best.is_better_than(further) else further
        return best

    def _log_short_of(self, suite: SuiteFiles, reason: object) -> None:
        self.log(f"the suite of the {suite.name} does not reach the change: {reason}")

    def _known(self, suite: SuiteFiles) -> frozenset[str]:
        """Benchmarks of *suite* that another was seen to have, and that do not execute the change."""
        files = suite.files or {}
        known: set[str] = set()
        for before, candidates in self.tried:
            was = self.remotes[Arm.BASE].read(files) if before.files is None else before.files
            known |= still_ruled_out(candidates, was, files, benchmark_dir=self.benchmark_dir)
        return frozenset(known)

    def _install(self, files: Mapping[str, bytes]) -> None:
        for arm in Arm:
            self.remotes[arm].write(files)

    def _restore(self, suite: SuiteFiles) -> None:
        """Give the checkouts back the files that *suite* replaced."""
        if suite.files is not None:
            for remote in self.remotes.values():
                remote.restore()

    def _survey_whole(self, ruled_out: frozenset[str]) -> list[Survey]:
        """Run every benchmark once on the base and with the patch, in parallel if each has a core.

        If what reaches the change enters a changed function of the base, only what does runs with the patch, and the
        control has a share of the base's benchmarks.
        """
        asked = self._changed(())
        if self._changed(sorted(self.extensions)).entries is None:
            return self._survey_parallel({Arm.BASE: asked.base, Arm.ORACLE: asked.oracle}, ruled_out)
        base_arms = (Arm.BASE,) if self._is_only_core else (Arm.BASE, Arm.CONTROL)
        watched = joined(
            self._survey_parallel(dict.fromkeys(base_arms, asked.watched), ruled_out, shares=len(base_arms))
        )
        changed = self._changed(watched.extensions)
        base = with_lines(watched, changed.base)
        if changed.entries is None:
            return [base, *self._survey_parallel({Arm.ORACLE: asked.oracle}, ruled_out)]
        entering = [each.name for each in watched.benchmarks if may_enter(each)]
        return [base, with_rest(self._survey(Arm.ORACLE, entering), base, entering)]

    @property
    def _is_only_core(self) -> bool:
        return self.remotes[Arm.BASE].core_count == 1

    def _survey_parallel(
        self, lines: Mapping[Arm, Lines], ruled_out: frozenset[str], *, shares: int = 1
    ) -> list[Survey]:
        """Run the suite once on each arm of *lines*, which are traced; with more *shares* than one, a share on each."""
        surveys: list[Survey] = []
        either = " and the " if shares == 1 else " or the "
        for group in [(arm,) for arm in lines] if self._is_only_core else [tuple(lines)]:
            self.log(f"running every benchmark once on the {either.join(group)}")
            with self.budget.paused_at_first(self.turn()), ThreadPoolExecutor(len(group)) as pool:
                seconds = self._survey_seconds()
                futures = [
                    pool.submit(
                        self._ask,
                        arm,
                        lines[arm],
                        seconds,
                        BenchmarkSelection(ruled_out=ruled_out, share=(number % shares, shares)),
                    )
                    for number, arm in enumerate(group)
                ]
                surveys += [future.result() for future in futures]
        return surveys

    def _survey(self, arm: Arm, only: Sequence[str], *, is_traced: bool = True) -> Survey:
        self.log(f"running {len(only)} benchmarks once on the {arm}" if only else f"importing the suite on the {arm}")
        asked = self._changed(())
        lines = (asked.oracle if arm is Arm.ORACLE else asked.base) if is_traced else {}
        with self.budget.paused_at_first(self.turn()):
            return self._ask(arm, lines, self._survey_seconds(), BenchmarkSelection(only))

    def _survey_seconds(self) -> float:
        return self.budget.for_survey(self.plan.max_survey_seconds)

    def _ask(self, arm: Arm, lines: Lines, seconds: float, selection: BenchmarkSelection) -> Survey:
        return self.remotes[arm].survey(
            lines=lines,
            limit=float(self.limits.benchmark_seconds),
            budget=seconds,
            selection=replace(selection, names=self._changed(()).names),
        )

    def _changed(self, extensions: Sequence[str]) -> ChangedCode:
        return changed_code(
            self.files,
            base=self.sources[Arm.BASE],
            oracle=self.sources[Arm.ORACLE],
            benchmark_dir=self.benchmark_dir,
            extensions=extensions,
        )

    def _run_once(
        self, suite: SuiteFiles, ruled_out: frozenset[str]
    ) -> tuple[list[BenchmarkCandidate], list[BenchmarkFailure], ChangedCode]:
        """Survey *suite* without those *ruled_out*: candidates, failures, and the changed code that it can execute."""
        base, oracle = self._survey_whole(ruled_out)
        if doubtful := disagreeing(base, oracle):
            # a single failure may be a hiccup of the machine, so it is retried before anything is blamed
            base = renewed(base, self._survey(Arm.BASE, doubtful))
            oracle = renewed(oracle, self._survey(Arm.ORACLE, doubtful))
        if base.uninstalled:
            self.log(f"last on the import path, though not installed: {', '.join(base.uninstalled)}")
        self.extensions.update(base.extensions)
        changed = self._changed(base.extensions)
        lines = {arm: sum(map(len, at.values())) for arm, at in (("base", changed.base), ("oracle", changed.oracle))}
        self.log.keep(f"changed lines: {lines['base']} on the base, {lines['oracle']} with the patch")
        if changed.untraceable:
            self.log(f"Python cannot trace: {', '.join(changed.untraceable)}")
        candidates, failures = comparable(base, oracle, changed)
        candidates = self.compiled.settle(candidates, changed, suite)
        self.surveyed.add(suite, candidates)
        return candidates, failures, changed

    def _select(self, suite: SuiteFiles, known: frozenset[str] = frozenset(), reserve: float = SEARCH_SHARE) -> Choice:
        """Choose from *suite*, of whose surveys none begins when less than the share *reserve* of the time is left."""
        if ruled_out := self.surveyed.ruled_out(suite) | known:
            self.log(f"an earlier survey ran {len(ruled_out)} benchmarks, which do not execute the change")
        seen, failed = self.seen.get(suite.sha256, (frozenset(), {}))
        ruled_out |= seen
        while True:
            candidates, failures, changed = self._run_once(suite, ruled_out)
            failed |= {(failure.arm, failure.benchmark): failure for failure in failures}
            later = ruled_out | {candidate.name for candidate in candidates if candidate.executes_change is False}
            later |= {failure.benchmark for failure in failures}
            self.seen[suite.sha256] = later, failed
            left = sum(candidate.unknown == NO_TIME for candidate in candidates)
            is_found = any(candidate.executes_change for candidate in candidates)
            if is_found or not left or later == ruled_out or self.budget.left < reserve * self.budget.seconds:
                break
            self.log(f"none of {len(candidates) - left} benchmarks executes the change, {left} are left to run")
            ruled_out = later
        self.tried.append((suite, candidates))
        candidates = self._with_time_in_change(candidates, changed)
        limit, seed = self.plan.max_benchmarks, self.plan.seed
        aimed = select(candidates, limit=limit, seed=seed, is_partly_hidden=bool(changed.untraceable))
        selected = self._asked_of_state(aimed)
        left_out = UntimedCounts.of(candidates, selected)
        self.log("; ".join(filter(None, [f"{len(selected)} of {len(candidates)} benchmarks are timed", str(left_out)])))
        ready = selected
        if changes_no_compiled_code(self.files):
            ready = [candidate.with_copied_control() for candidate in selected]
        for _ in range(TRIES):
            missing = {arm: [candidate.name for candidate in ready if not candidate.runs_on(arm)] for arm in Arm}
            surveys = {arm: self._survey(arm, names) for arm, names in missing.items() if names}
            ready = [with_surveys(candidate, surveys) for candidate in ready]
        ready, stopped = completed(ready)
        if not ready:
            raise nothing_timed(stopped)
        return Choice(suite, ready, [*failed.values(), *stopped], changed, left_out)

    def _with_time_in_change(
        self, candidates: list[BenchmarkCandidate], changed: ChangedCode
    ) -> list[BenchmarkCandidate]:
        """Look at those that come first in the order of timing: more than may be timed, since some turn out weak."""
        limit = self.plan.max_benchmarks
        asked = in_order_of_timing(candidates, limit=limit, seed=self.plan.seed)[: LOOKED_AT * limit]
        with self.budget.paused_at_first(self.turn()):
            looked = with_time_in_change(asked, changed, self.remotes, self._survey_seconds(), self.log)
        known = {candidate.name: candidate for candidate in looked}
        return [known.get(candidate.name, candidate) for candidate in candidates]

    def _asked_of_state(self, selected: list[BenchmarkCandidate]) -> list[BenchmarkCandidate]:
        """Return *selected* with state dependence known for all: surveys ask it only of those that execute traced
        lines.
        """
        names, changed = [candidate.name for candidate in selected if not candidate.executed], self._changed(())
        if not names or not (changed.base or changed.oracle):
            return selected
        surveys = {arm: self._survey(arm, names, is_traced=False) for arm in (Arm.BASE, Arm.ORACLE)}
        return [with_surveys(candidate, surveys) for candidate in selected]


def _with_the_rest(unfinished: ItemFailure, first: Rejection | ItemFailure) -> ItemFailure:
    """Return *unfinished*, noting that nothing else was found, with the failure of the *first* suite if it differs."""
    rest = NOTHING_ELSE if first is unfinished else f"{NOTHING_ELSE}: {first}"
    return ItemFailure(
        unfinished.kind,
        f"{unfinished.what}; {rest}",
        why=unfinished.why,
        remedy="FC_MEASURE_SECONDS is the time for one attempt: with more it is tried again",
        log_tail=unfinished.log_tail,
    )
