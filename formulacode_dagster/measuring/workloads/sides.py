"""Base and oracle of a task, and copies of both in which something can be tried."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from formulacode_dagster.building.engines.protocol import Engine, Session
from formulacode_dagster.building.suites.questions import FAILED, Survey, SurveyedBenchmark
from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient
from formulacode_dagster.models.image import BuiltImage, EngineName

Lines = Mapping[str, Collection[int]]
"""Numbers of lines by path below the repository."""
Wanted = Callable[[Mapping[str, SurveyedBenchmark]], Collection[str]]
"""Returns the names of benchmarks to continue with, of those that ran on the base."""


@dataclass(frozen=True)
class Sides:
    """The sessions of *image*, base and oracle, with the changed lines of each."""

    engine: Engine
    image: BuiltImage
    sessions: tuple[Session, Session]
    lines: tuple[Lines, Lines]
    run_id: str
    is_compiled: bool = False
    """True if compiled code changes too: its execution is seen only in the resulting suite."""

    @property
    def can_be_aimed(self) -> bool:
        """True if any changed line can be traced."""
        return self.is_compiled or any(numbers for side in self.lines for numbers in side.values())

    def may_execute_change(self, tried: Tried) -> bool:
        """Return True if a call on either side executes a changed line, as far as tracing shows."""
        return self.is_compiled or bool(tried.base.lines or tried.oracle.lines)

    @property
    def is_confined(self) -> bool:
        """True if everything runs in containers: code that no maintainer merged runs nowhere else."""
        return self.image.engine is EngineName.DOCKER

    @contextmanager
    def copies(self) -> Iterator[tuple[Session, Session]]:
        """Return copies of the sessions of base and oracle, which can be modified freely."""
        base, oracle = self.sessions
        with (
            self.engine.session(self.image, run_id=self.run_id, like=base) as first,
            self.engine.session(self.image, run_id=self.run_id, like=oracle) as second,
        ):
            yield first, second

    def trial(
        self,
        files: Mapping[str, bytes],
        *,
        limit: float,
        budget: float,
        only: Collection[str] | None = None,
        wanted: Wanted = list,
    ) -> Trial:
        """The suite *files* on base, base again and oracle, in copies: *limit* seconds a benchmark, *budget* a run.

        Tracing would make short calls long, so nothing is traced in the first run, which is of *only* some or of all;
        the others are of those *wanted*.
        """
        spec = self.image.spec

        def survey(session: Session, lines: Lines, names: Collection[str] | None) -> Survey:
            remote = HarnessClient(session, benchmark_dir=spec.benchmark_dir, environment=spec.run_environment)
            remote.write(files)
            selection = BenchmarkSelection(names)
            return remote.survey(lines=lines, limit=limit, budget=budget, selection=selection, results=True)

        with self.copies() as (base, oracle):
            first = survey(base, {}, only)
            untraced = _ran(first)
            names = wanted(untraced)
            traced = _ran(survey(base, self.lines[0], names))
            patched = _ran(survey(oracle, self.lines[1], list(traced)))
        messages = [each.message for each in first.benchmarks if each.outcome in FAILED]
        tried = [Tried(traced[name], untraced[name], patched[name]) for name in patched]
        unwanted = [each for name, each in untraced.items() if name not in names]
        return Trial(tried, [*first.lost.values(), *messages], unwanted)


@dataclass(frozen=True)
class Trial:
    """Result of trying a suite."""

    tried: Sequence[Tried]
    """Its benchmarks that ran on both sides, on the base twice."""
    failures: Sequence[str]
    """Messages of the first run on the base about benchmarks that do not run there."""
    unwanted: Sequence[SurveyedBenchmark] = ()
    """Benchmarks that ran there, and did not run again."""


@dataclass(frozen=True)
class Tried:
    """One benchmark that ran on both sides, on the base twice."""

    base: SurveyedBenchmark
    again: SurveyedBenchmark
    """Nothing is traced in it."""
    oracle: SurveyedBenchmark

    @property
    def seconds(self) -> float:
        """Seconds of a call on the base: the smaller, since tracing and slow moments only add to them."""
        return min(self.base.seconds, self.again.seconds)

    @property
    def is_comparable(self) -> bool:
        """True if its return value can be compared."""
        return self.base.returned is not None and bool(self.base.returned.form) and not self.base.returned.is_none

    @property
    def agrees(self) -> bool:
        """True if it returns the same each time; incomparable values count too."""
        first, *others = (each.returned for each in (self.base, self.again, self.oracle))
        return all(first == other or (first and other and first.equals(other)) for other in others)


def _ran(survey: Survey) -> dict[str, SurveyedBenchmark]:
    return {benchmark.name: benchmark for benchmark in survey.benchmarks if benchmark.outcome == "ran"}
