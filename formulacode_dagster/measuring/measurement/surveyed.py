"""Results of earlier surveys of a task, so that one which ran out of time can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from formulacode_dagster.building.suites.overlays import SuiteFiles

from .relevance import NO_TIME, BenchmarkCandidate

Keep = Callable[[str, frozenset[str]], None]


def _forget(_suite: str, _names: frozenset[str]) -> None:
    """Keep nothing beyond this measurement."""


@dataclass
class Surveyed:
    """The benchmarks of each suite that ran on base and oracle, and executed nothing of the change."""

    by_suite: Mapping[str, frozenset[str]] = field(default_factory=dict)
    keep: Keep = _forget

    def ruled_out(self, suite: SuiteFiles) -> frozenset[str]:
        """Names of the benchmarks of *suite* that need not run again."""
        return self.by_suite.get(_key(suite), frozenset())

    def add(self, suite: SuiteFiles, candidates: Sequence[BenchmarkCandidate]) -> None:
        """Store which of *candidates* do not execute the change, when there was no time to run all."""
        if not any(candidate.unknown == NO_TIME for candidate in candidates):
            return
        names = frozenset(candidate.name for candidate in candidates if candidate.executes_change is False)
        self.keep(_key(suite), self.ruled_out(suite) | names)


def _key(suite: SuiteFiles) -> str:
    """Key by content, because suite names are not stable."""
    return suite.sha256 or suite.name
