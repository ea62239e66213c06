"""Mutants of a patch: tests that detect none of them are weak."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from formulacode_dagster.models.correctness import Mutant, Mutation, MutationKind, ReachingTest

from .runs import TEST_SECONDS, TestRun

MOST_MUTANTS = 3
MOST_TESTS = 25
"""Number of tests per mutant, the fastest that execute it."""
TESTS_SECONDS = 20.0
"""Their total time without it, in seconds."""
MUTANT_SECONDS = 60.0
"""Time limit of one mutant, including collection."""
BEGUN_WITHIN_SECONDS = 60.0
"""No further mutant is begun later."""
LEAST_LIMIT, LIMIT_FACTOR = 5.0, 5.0
"""A test is stopped after this many seconds, or this multiple of its time without the mutant."""


class Kills(Protocol):
    """Runs tests against a mistake, as `TestRunner.kills` does."""

    def __call__(
        self, path: str, mutation: Mutation, named: Sequence[str], *, limit: float, seconds: float
    ) -> bool | None:
        """Return True if one of the tests *named* does not pass."""


def try_mutants(
    kills: Kills, run: TestRun, tests: Sequence[ReachingTest], *, clock: Callable[[], float] = time.monotonic
) -> tuple[Mutant, ...]:
    """Mistakes in lines that *tests* execute in a *run* of the patch, one after the other until one is noticed.

    Only whether any is detected matters, so most patches need a single one. Mutants that cannot be tried are left out.
    """
    taken = {test.name: test.seconds for test in tests}
    started, tried = clock(), []
    for path, mutation in chosen(run, taken):
        if clock() - started > BEGUN_WITHIN_SECONDS:
            break
        named = _quickest(_executing(run, path, mutation.line, taken), taken)
        limit = min(TEST_SECONDS, max(LEAST_LIMIT, LIMIT_FACTOR * max(taken[name] for name in named)))
        killed = kills(path, mutation, named, limit=limit, seconds=MUTANT_SECONDS)
        if killed is not None:
            tried.append(Mutant(path=path, tests=len(named), killed=killed, **mutation.model_dump()))
        if killed:
            break
    return tuple(tried)


def chosen(run: TestRun, names: Collection[str]) -> list[tuple[str, Mutation]]:
    """Return at most MOST_MUTANTS mutants of lines that *names* execute: one per kind before a second of any."""
    places = [
        (path, mutation)
        for path, mutations in sorted(run.mutations.items())
        for mutation in mutations
        if _executing(run, path, mutation.line, names)
    ]
    kinds = list(MutationKind)
    numbered = []
    for kind in kinds:
        of_kind = [place for place in places if place[1].kind is kind]
        numbered += [(number, kinds.index(kind), place) for number, place in enumerate(of_kind)]
    return [place for _, _, place in sorted(numbered, key=lambda each: each[:2])[:MOST_MUTANTS]]


def _executing(run: TestRun, path: str, line: int, names: Collection[str]) -> list[str]:
    return [name for name in names if name in run.tests and line in run.tests[name].lines.get(path, ())]


def _quickest(names: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Executed by at least one of *names*."""
    quickest: list[str] = []
    spent = 0.0
    for name in sorted(names, key=lambda name: (seconds[name], name))[:MOST_TESTS]:
        spent += seconds[name]
        if quickest and spent > TESTS_SECONDS:
            break
        quickest.append(name)
    return quickest
