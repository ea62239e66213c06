"""Base and oracle of a task, and copies of both in which something can be tried."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from formulacode_dagster.engines.protocol import Engine, Session
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.suites.questions import SurveyedBenchmark
from formulacode_dagster.suites.remote import Remote

Lines = Mapping[str, Collection[int]]
"""Numbers of lines by path below the repository."""


@dataclass(frozen=True)
class Sides:
    """The sessions of *image*, base and oracle, with the changed lines of each."""

    engine: Engine
    image: BuiltImage
    sessions: tuple[Session, Session]
    lines: tuple[Lines, Lines]
    run_id: str

    @property
    def can_be_traced(self) -> bool:
        """Whether any line of Python changed: without, nobody can tell what executes the change."""
        return any(numbers for side in self.lines for numbers in side.values())

    @contextmanager
    def copies(self) -> Iterator[tuple[Session, Session]]:
        """Sessions like base and oracle; what is done in them leaves those as they are."""
        base, oracle = self.sessions
        with (
            self.engine.session(self.image, run_id=self.run_id, like=base) as first,
            self.engine.session(self.image, run_id=self.run_id, like=oracle) as second,
        ):
            yield first, second

    def tried(self, files: Mapping[str, bytes], *, limit: float, budget: float) -> list[Tried]:
        """What ran on base, base again and oracle of the suite *files*: *limit* seconds a benchmark, *budget* a run."""
        spec = self.image.spec
        surveys: list[dict[str, SurveyedBenchmark]] = []
        with self.copies() as (base, oracle):
            for session, lines in ((base, self.lines[0]), (base, self.lines[0]), (oracle, self.lines[1])):
                remote = Remote(session, benchmark_dir=spec.benchmark_dir, environment=spec.run_environment)
                remote.write(files)
                only = list(surveys[-1]) if surveys else None
                survey = remote.survey(lines=lines, limit=limit, budget=budget, only=only, results=True)
                surveys.append({each.name: each for each in survey.benchmarks if each.outcome == "ran"})
        return [Tried(*(survey[name] for survey in surveys)) for name in surveys[-1]]


@dataclass(frozen=True)
class Tried:
    """One benchmark that ran on both sides, on the base twice."""

    base: SurveyedBenchmark
    again: SurveyedBenchmark
    oracle: SurveyedBenchmark

    @property
    def seconds(self) -> float:
        """Of a call on the slower side."""
        return max(self.base.seconds, self.oracle.seconds)

    @property
    def executes_change(self) -> bool:
        """Whether a call on either side executes a changed line."""
        return bool(self.base.lines or self.oracle.lines)

    @property
    def is_comparable(self) -> bool:
        """Whether what it returns can be compared."""
        return bool(self.base.result)

    @property
    def agrees(self) -> bool:
        """Whether it returns the same each time; so does what cannot be compared."""
        return self.base.result == self.again.result == self.oracle.result
