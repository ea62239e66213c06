"""Where a benchmark's time goes, as the harness reports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.measurement import BaseProfile

CORE = """
class Table:
    def merge(self, n):
        return sorted(self.slow(n) for _ in range(3))

    def slow(self, n):
        total = 0
        for i in range(n):
            total += i
        return total
"""
BENCH = """
from pkg.core import Table

class Suite:
    params = [200_000, 300_000]

    def setup(self, n):
        self.table = Table()

    def time_merge(self, n):
        self.helper(n)

    def helper(self, n):
        self.table.merge(n)

def time_broken():
    raise SystemExit("never")

def time_other():
    Table().slow(100_000)

class Used:
    number = 1
    warm = []

    def setup(self):
        self.items = list(range(50_000))

    def time_use_up(self):
        assert len(self.items) == 50_000
        if not self.warm:
            self.warm.append(Table().merge(1_000_000))
        while self.items:
            self.items.pop()

def timeraw_it():
    return "pass"
"""


@pytest.fixture
def profile(session, lay):
    """The profile of a suite's benchmarks, in so many seconds."""

    def run(budget: float = 30.0) -> BaseProfile:
        lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": BENCH})
        remote = HarnessClient(session, benchmark_dir="benchmarks")
        return remote.profile(remote.survey(lines={}, limit=5, budget=20).benchmarks, budget=budget)

    return run


@pytest.mark.slow
def test_it_tells_the_functions_that_take_the_time_and_the_sources(profile) -> None:
    told = profile()
    merges = {"bench.Suite.time_merge(200000)", "bench.Suite.time_merge(300000)"}
    assert set(told.functions) == {*merges, "bench.time_other", "bench.Used.time_use_up"}
    hottest, *others = told.functions["bench.Suite.time_merge(200000)"]
    assert (hottest.file, hottest.function.rpartition(".")[2], hottest.line) == ("pkg/core.py", "slow", 6)
    assert hottest.own > 0.9
    merge = next(function for function in others if function.function.endswith("merge"))
    assert merge.own < 0.1 < 0.9 < merge.cumulative <= 1
    # what only the first call does is no part of it, and every call has what its setup made
    used_up = told.functions["bench.Used.time_use_up"]
    assert (used_up[0].function, {hot.file for hot in used_up}) == ("<method 'pop' of 'list' objects>", {""})
    # neither the suite nor the profiler is among them
    functions = [function for hot in told.functions.values() for function in hot]
    assert {function.file for function in functions} <= {"pkg/core.py", ""}
    assert not [function for function in functions if "lsprof" in function.function]
    assert set(told.sources) == {
        "bench.Suite",
        "bench.Used",
        "bench.time_broken",
        "bench.time_other",
        "bench.timeraw_it",
    }
    assert told.sources["bench.Suite"].startswith("class Suite:\n    params")
    assert "def helper" in told.sources["bench.Suite"]
    assert told.sources["bench.time_other"] == "def time_other():\n    Table().slow(100_000)\n"


@pytest.mark.slow
def test_without_time_nothing_is_profiled_and_sources_are_told(profile) -> None:
    told = profile(budget=0.0)
    assert (told.functions, len(told.sources)) == ({}, 5)
