"""Base and oracle of a task, and copies of both in which something can be tried."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from formulacode_dagster.engines.protocol import Engine, Session
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.suites.remote import Remote, Survey, SurveyedBenchmark

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
        """What ran on both sides of the suite *files*, each once: *limit* seconds a benchmark, *budget* a side."""
        spec = self.image.spec
        surveys: list[Survey] = []
        with self.copies() as sessions:
            for session, lines in zip(sessions, self.lines, strict=True):
                remote = Remote(session, benchmark_dir=spec.benchmark_dir, environment=spec.run_environment)
                remote.write(files)
                only = [benchmark.name for benchmark in _ran(surveys[0])] if surveys else None
                surveys.append(remote.survey(lines=lines, limit=limit, budget=budget, only=only))
        on_oracle = {benchmark.name: benchmark for benchmark in _ran(surveys[1])}
        return [
            Tried(benchmark, on_oracle[benchmark.name]) for benchmark in _ran(surveys[0]) if benchmark.name in on_oracle
        ]


@dataclass(frozen=True)
class Tried:
    """One benchmark that ran on both sides."""

    base: SurveyedBenchmark
    oracle: SurveyedBenchmark

    @property
    def seconds(self) -> float:
        """Of a call on the slower side."""
        return max(self.base.seconds, self.oracle.seconds)

    @property
    def executes_change(self) -> bool:
        """Whether a call on either side executes a changed line."""
        return bool(self.base.lines or self.oracle.lines)


def _ran(survey: Survey) -> list[SurveyedBenchmark]:
    return [benchmark for benchmark in survey.benchmarks if benchmark.outcome == "ran"]
