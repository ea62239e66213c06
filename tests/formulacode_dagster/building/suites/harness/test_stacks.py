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

class Short:
    number = 1

    def setup(self):
        sorted(range(2_000), key=str)

    def time_short(self):
        outer(5_000)

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
THREADS = """
import threading
from pkg.core import slow

def time_in_a_thread():
    thread = threading.Thread(target=slow, args=(300_000,))
    thread.start()
    thread.join()
"""


@pytest.mark.slow
def test_each_stack_of_a_benchmark_has_its_time(session, lay):
    lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": BENCH})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    asked = remote.survey(lines={}, limit=5, budget=20).benchmarks
    told = remote.stacks(asked, seconds=0.2, budget=30)
    assert set(told) == {"bench.Suite.time_outer(20000)", "bench.Short.time_short", "bench.Used.time_use_up"}
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
    assert used.calls > 1
    assert used.seconds_per_call < 0.2
    assert remote.stacks(asked, seconds=0.2, budget=0) == {}


@pytest.mark.slow
def test_of_functions_asked_for_the_share_of_the_time_is_told(session, lay):
    lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": BENCH})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    (outer,) = (one for one in remote.survey(lines={}, limit=5, budget=20).benchmarks if "outer" in one.name)

    def share(first: int, last: int) -> float:
        within = {"pkg/core.py": [(first, last)]}
        (told,) = remote.stacks([outer], seconds=0.2, budget=30, within=within).values()
        assert told.share_inside is not None
        return told.share_inside

    lines = CORE.splitlines()
    begins = {name: lines.index(f"def {name}(n):") + 1 for name in ("outer", "slow")}
    assert share(begins["outer"], begins["outer"] + 1) > 0.95
    assert 0.5 < share(begins["slow"], begins["slow"] + 4) <= 1
    assert share(100, 110) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("last", "least", "most"), [(20, 0.1, 0.25), (1, 0.3, 1.0)], ids=["within", "elsewhere"])
def test_a_third_of_the_seconds_is_enough_for_a_clear_share(session, lay, last, least, most):
    lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": BENCH})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    short = [one for one in remote.survey(lines={}, limit=5, budget=20).benchmarks if "short" in one.name]
    within = {"pkg/core.py": [(1, last)]}
    (told,) = remote.stacks(short, seconds=0.3, budget=30, within=within, enough=0.5).values()
    assert least <= told.seconds < most


DEEP = """
from pkg.core import slow

def walk(depth):
    return walk(depth - 1) if depth else slow(50_000)

def time_deep():
    walk(300)
"""


@pytest.mark.slow
def test_the_time_in_a_function_is_known_however_deep_it_is_called(session, lay):
    lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": DEEP})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    asked = remote.survey(lines={}, limit=5, budget=20).benchmarks
    (sampled,) = remote.stacks(asked, seconds=0.2, budget=30, within={"pkg/core.py": [(8, 12)]}).values()
    assert sampled.share_inside is not None
    assert sampled.share_inside > 0.9
    assert max(len(stack.frames) for stack in sampled.stacks) == 150


@pytest.mark.slow
def test_short_calls_are_set_up_again_until_enough_is_seen(session, lay):
    lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": BENCH})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    short = [one for one in remote.survey(lines={}, limit=5, budget=20).benchmarks if "short" in one.name]
    (told,) = remote.stacks(short, seconds=0.2, budget=30, within={"pkg/core.py": [(1, 20)]}).values()
    assert told.calls > 1
    assert told.share_inside is not None
    assert told.share_inside > 0.9


@pytest.mark.slow
def test_nothing_is_told_of_other_threads(session, lay):
    lay(Path(session.repository), {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": THREADS})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    asked = remote.survey(lines={}, limit=5, budget=20).benchmarks
    (told,) = remote.stacks(asked, seconds=0.2, budget=30, within={"pkg/core.py": [(1, 20)]}).values()
    assert told.share_inside is None
