"""Stacks in which a benchmark's time goes, as the harness reports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.suites.remote import HarnessClient

CORE = """
def outer(n):
    return middle(n)

def middle(n):
    return slow(n) + len(sorted(range(n)))

def slow(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
"""
BENCH = """
from pkg.core import outer, slow

class Suite:
    params = [20_000]

    def time_outer(self, n):
        outer(n)

def time_broken():
    raise SystemExit("never")

class Used:
    number = 1

    def setup(self):
        self.items = [1]

    def time_use_up(self):
        assert self.items.pop() == 1
        slow(300_000)

def timeraw_it():
    return "pass"
"""


@pytest.mark.slow
def test_each_stack_of_a_benchmark_has_its_time(session, lay):
    lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": BENCH})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    asked = remote.survey(lines={}, limit=5, budget=20).benchmarks
    told = remote.stacks(asked, seconds=0.2, budget=30)
    assert set(told) == {"bench.Suite.time_outer(20000)", "bench.Used.time_use_up"}
    outer = told["bench.Suite.time_outer(20000)"]
    assert outer.calls > 1
    assert outer.seconds_per_call * outer.calls == pytest.approx(outer.seconds)
    names = [(frame.file, frame.function.rpartition(".")[2]) for frame in outer.frames]
    by_stack = {tuple(names[number][1] for number in stack.frames): stack.seconds for stack in outer.stacks}
    deepest = ("time_outer", "outer", "middle", "slow")
    assert ("pkg/core.py", "slow") in names
    # a loop in Python takes many times what sorting in C takes, however busy the machine is
    assert by_stack[deepest] > 0.5 * sum(by_stack.values())
    assert sum(by_stack.values()) <= outer.seconds + 1e-3
    used = told["bench.Used.time_use_up"]
    assert used.calls == 1
    assert remote.stacks(asked, seconds=0.2, budget=0) == {}
