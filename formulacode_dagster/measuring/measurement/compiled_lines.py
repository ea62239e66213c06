"""Finds benchmarks that execute changed compiled code, in builds with line coverage."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Self

from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.suites.harness_output import describe
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.questions import Coverage, Survey
from formulacode_dagster.building.suites.remote import BenchmarkSelection, CompiledTrace, HarnessClient
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.sources.git.diff import split_patch

from .arms import Arms
from .changed_code import ChangedCode, Lines
from .patch import FileChange
from .plan import SamplingPlan
from .relevance import NO_TIME, BenchmarkCandidate
from .time_budget import TimeBudget

RUST = "*.rs"
ANY_UNIT = ("*.c", "*.cc", "*.cpp", "*.cxx", "*.[fF]*")
UNITS = frozenset({".c", ".cc", ".cpp", ".cxx", ".pyx", ".py", ".f", ".for", ".f90", ".f95", ".f03"})
"""Sources that are compiled by themselves; others are part of any that includes them."""
_DECLARATIONS = re.compile(
    r"(?:^[ \t]*(?:#[^\n]*)?\n"
    r"|^[^\n:()#]*\bcimport\b[^\n:()#]*\n"
    r"|^[ \t]*cp?def [^\n:()#]*\([^()]*\)[^\n:()]*\n)*",
    re.MULTILINE,
)
"""Lines of Cython that hold no code: comments, imports, and signatures, which may go over several lines."""
_PLAIN = re.compile(r"[\w.+-]+")


@dataclass
class CompiledLines:
    """Coverage builds of base and oracle, separate from the timed ones, made on demand; removed with the context."""

    arms: Arms
    patch: bytes
    limits: ResourceLimits
    plan: SamplingPlan
    budget: TimeBudget
    log: Callable[[str], None]
    turn: Turn = nullcontext
    """Turn of builds on the machine."""
    choosing: Turn = nullcontext
    """Turn of selection runs there."""
    _builds: dict[Arm, tuple[HarnessClient, Coverage | None]] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def settle(
        self, candidates: Sequence[BenchmarkCandidate], changed: ChangedCode, suite: SuiteFiles
    ) -> list[BenchmarkCandidate]:
        """Return *candidates*, with undecided ones marked by whether they execute the *changed* compiled code.

        They stay unknown if the build fails, is neither gcc's nor rustc's, or lacks the changed lines; and if there is
        no time to run them, which another attempt may have. Candidates decided before are not run.
        """
        names = [candidate.name for candidate in candidates if candidate.executes_change is None]
        if not changed.compiled or not names:
            return list(candidates)
        surveys: list[Survey] = []
        hit: set[str] = set()
        counted: set[str] = set()
        declaring = _declaring(self.patch)
        for arm, paths in (
            (Arm.BASE, {change.base_path: change for change in changed.compiled}),
            (Arm.ORACLE, {change.oracle_path: change for change in changed.compiled}),
        ):
            # signatures are no lines of any source: for them every source would be compiled with coverage
            paths = {path: change for path, change in paths.items() if path not in declaring}
            survey = self._survey(arm, paths, suite, [name for name in names if name not in hit], changed.names)
            if survey is not None:
                surveys.append(survey)
                hit |= {run.name for run in survey.benchmarks if run.lines}
                counted |= {paths[path].path for path in survey.seen if path in paths}
        hidden = [part for part in changed.untraceable if not counted or part not in counted | declaring]
        why = f"a build with coverage does not cover {', '.join(hidden)}" if hidden else ""
        told = _Told(surveys, why, tells=bool(counted), is_all=not (changed.base or changed.oracle))
        return [told.of(candidate) for candidate in candidates]

    def _survey(
        self,
        arm: Arm,
        changes: dict[str | None, FileChange],
        suite: SuiteFiles,
        only: Sequence[str],
        names: Collection[str],
    ) -> Survey | None:
        lines = {
            path: change.base_lines if arm is Arm.BASE else change.oracle_lines
            for path, change in changes.items()
            if path is not None
        }
        if not only or not any(lines.values()):
            return None
        try:
            remote, coverage = self._build(arm, lines)
            if coverage is None:
                return None
            if suite.files is None:
                remote.restore()
            else:
                remote.write(suite.files)
            self.log(f"running {len(only)} benchmarks once on the {arm} with coverage")
            with self.budget.paused_at_first(self.choosing()):
                survey = remote.survey(
                    lines={},
                    limit=float(self.limits.benchmark_seconds),
                    budget=self.budget.for_survey(self.plan.max_survey_seconds),
                    selection=BenchmarkSelection(only, names),
                    compiled=CompiledTrace(coverage, lines),
                )
        except ItemFailure as failure:
            self.log(f"coverage of the {arm} cannot be told: {failure}")
            return None
        self.log(f"coverage of the {arm} tells of {', '.join(survey.seen) or 'no changed file'}")
        if left := sum(run.outcome == "untraced" for run in survey.benchmarks):
            self.log(f"no time to run {left} of {len(only)} benchmarks with coverage")
        return survey

    def _build(self, arm: Arm, lines: Lines) -> tuple[HarnessClient, Coverage | None]:
        """Return the harness in a session with a coverage build of the arm's code; without coverage if that fails."""
        if arm not in self._builds:
            session, remote = self._stack.enter_context(self.arms.copied(arm))
            remote.restore()
            self.log(f"building the {arm} with coverage")
            coverage = remote.instrument(_units(lines), linkers=self.arms.linkers.get(arm, ""))
            with self.budget.building(self.turn()):
                built = session.reinstall(timeout=self.limits.build_seconds, environment=coverage.variables)
            if not built.ok:
                self.log(f"the {arm} does not build with coverage: {describe(built)}")
            self._builds[arm] = remote, coverage if built.ok else None
        return self._builds[arm]


def _declaring(patch: bytes) -> set[str]:
    """Return the `.pxd` files of which *patch* changes signatures and imports only: no code, and no type."""
    return {
        file.path
        for file in split_patch(patch)
        if file.path.endswith(".pxd")
        and all(
            _DECLARATIONS.fullmatch("".join(f"{line.text}\n" for line in file.changed_lines() if line.sign == sign))
            for sign in "+-"
        )
    }


def _units(lines: Lines) -> set[str]:
    """Return patterns of the sources that must be compiled with coverage to see the changed files."""
    paths = [PurePosixPath(path) for path in lines]
    # of Rust the crate is compiled, not the file
    rust = {RUST for path in paths if path.match(RUST)}
    others = [path for path in paths if not path.match(RUST)]
    if all(path.suffix.lower() in UNITS and _PLAIN.fullmatch(path.stem) for path in others):
        return rust | {f"{path.stem}.*" for path in others}
    return rust | set(ANY_UNIT)


@dataclass(frozen=True)
class _Told:
    """Results of surveys in coverage builds."""

    surveys: Sequence[Survey]
    why: str
    """Parts of the change that they do not cover, if any."""
    tells: bool
    """True if they cover any of it."""
    is_all: bool
    """True if only compiled code changed."""

    def of(self, candidate: BenchmarkCandidate) -> BenchmarkCandidate:
        """*candidate* after them."""
        if candidate.executes_change is not None:
            return candidate
        runs = [run for survey in self.surveys for run in survey.benchmarks if run.name == candidate.name]
        if any(run.lines for run in runs):
            return replace(candidate, executes_change=True, unknown="")
        # an untraced benchmark may execute changed Python
        if candidate.unknown == NO_TIME and not self.is_all:
            return candidate
        if self.tells and any(run.outcome == "untraced" for run in runs):
            return replace(candidate, unknown=NO_TIME)
        if self.why or not self.surveys:
            return replace(candidate, unknown=self.why or candidate.unknown)
        if len(runs) < len(self.surveys) or not all(run.outcome == "ran" and run.traceable for run in runs):
            return replace(candidate, unknown="it did not run to its end in a build with coverage")
        return replace(candidate, executes_change=False, unknown="")
