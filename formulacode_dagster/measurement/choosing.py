"""Finding the suite, and in it the benchmarks, that tell something about a change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm, BenchmarkFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.suites.overlays import SuiteFiles
from formulacode_dagster.suites.remote import Remote, Survey

from .budget import Budget
from .changed_code import ChangedCode, changed_code
from .log import Log
from .patch import FileChange
from .plan import SamplingPlan
from .relevance import Candidate, comparable, completed, disagreeing, renewed, select, with_surveys
from .sampling import nothing_timed

TRIES = 2
"""Of running a benchmark once on an arm."""
SURVEY_SHARE = 0.25
"""Of the time that is left, for a survey of one arm."""

LaterSuites = Callable[[Collection[str]], Iterable[SuiteFiles]]
"""Gives suites of later commits for the names of what a patch changes."""


def no_later_suites(_names: Collection[str]) -> Iterable[SuiteFiles]:
    """None: the suite at hand has to do."""
    return ()


@dataclass(frozen=True)
class Choice:
    """What is timed."""

    suite: SuiteFiles
    candidates: list[Candidate]
    failures: list[BenchmarkFailure]
    changed: ChangedCode


@dataclass(frozen=True)
class Chooser:
    """Finds the suite, and in it the benchmarks, that tell something about the change."""

    remotes: Mapping[Arm, Remote]
    files: Sequence[FileChange]
    sources: Mapping[Arm, Mapping[str, bytes]]
    benchmark_dir: str
    limits: ResourceLimits
    plan: SamplingPlan
    budget: Budget
    log: Log

    def choose(self, suite: SuiteFiles, later: LaterSuites) -> Choice:
        """The suite, its benchmarks to time, each seen to run on every arm, and those that fail.

        Raises what the first suite ended with when no later one does better.
        """
        try:
            return self._select(suite)
        except (Rejection, ItemFailure) as end:
            if isinstance(end, ItemFailure) and end.kind != FailureKind.BENCHMARKS_FAIL:
                raise
            ended: Rejection | ItemFailure = end
        self.log(f"the suite of the {suite.name} tells nothing about the change: {ended}")
        for other in later(self._changed(()).names):
            self.log(f"trying the suite of the {other.name}")
            for arm in Arm:
                self.remotes[arm].write(other.files or {})
            try:
                return self._select(other)
            except (Rejection, ItemFailure) as end:
                self.log(f"the suite of the {other.name} tells nothing about the change: {end}")
        raise ended

    def _survey(self, arm: Arm, only: Sequence[str] | None = None) -> Survey:
        self.log(f"running {'every benchmark' if only is None else f'{len(only)} benchmarks'} once on the {arm}")
        paths = {path for change in self.files for path in (change.base_path, change.oracle_path) if path}
        return self.remotes[arm].survey(
            basenames={PurePosixPath(path).name for path in paths},
            limit=float(self.limits.benchmark_seconds),
            budget=min(self.plan.max_survey_seconds, SURVEY_SHARE * self.budget.left),
            only=only,
            names=self._changed(()).names,
        )

    def _changed(self, extensions: Sequence[str]) -> ChangedCode:
        return changed_code(
            self.files,
            base=self.sources[Arm.BASE],
            oracle=self.sources[Arm.ORACLE],
            benchmark_dir=self.benchmark_dir,
            extensions=extensions,
        )

    def _select(self, suite: SuiteFiles) -> Choice:
        base, oracle = self._survey(Arm.BASE), self._survey(Arm.ORACLE)
        if doubtful := disagreeing(base, oracle):
            # what fails once on one of them may be a hiccup of the machine: nobody is blamed for that
            base = renewed(base, self._survey(Arm.BASE, doubtful))
            oracle = renewed(oracle, self._survey(Arm.ORACLE, doubtful))
        changed = self._changed(base.extensions)
        self.log.keep(f"changed functions: {len(changed.base)} on the base, {len(changed.oracle)} with the patch")
        if changed.untraceable:
            self.log(f"cannot be traced: {', '.join(changed.untraceable)}")
        candidates, failures = comparable(base, oracle, changed)
        selected = select(candidates, changed, limit=self.plan.max_benchmarks, seed=self.plan.seed)
        self.log(f"{len(selected)} of {len(candidates)} benchmarks are timed")
        ready = selected
        for _ in range(TRIES):
            missing = {arm: [one.name for one in ready if not one.runs_on(arm)] for arm in Arm}
            surveys = {arm: self._survey(arm, names) for arm, names in missing.items() if names}
            ready = [with_surveys(candidate, surveys) for candidate in ready]
        ready, stopped = completed(ready)
        if not ready:
            raise nothing_timed(stopped)
        return Choice(suite, ready, [*failures, *stopped], changed)
