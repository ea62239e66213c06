from __future__ import annotations

import inspect
import subprocess
import sys
import time
import timeit

import pytest

from formulacode_dagster.building.suites.harness import own_time as module
from formulacode_dagster.building.suites.harness.own_time import OwnTime, own_time


@pytest.fixture
def timed(monkeypatch):
    """Own time of a call if that many seconds passed, it had the core for some, and waited that often."""

    def run(*, passed, had, waits):
        state = {"passed": 0.0, "had": 0.0, "waits": 0}
        monkeypatch.setattr(module.time, "perf_counter", lambda: state["passed"])
        monkeypatch.setattr(module.time, "thread_time", lambda: state["had"])
        monkeypatch.setattr(module, "_waits", lambda: state["waits"])
        timer = OwnTime(timeit.Timer(lambda: state.update(passed=passed, had=had, waits=waits)))
        return timer.timeit(1)

    return run


def test_what_others_had_the_core_for_does_not_count(timed):
    assert timed(passed=5.0, had=2.0, waits=0) == 2.0


def test_what_it_waited_for_by_itself_counts(timed):
    assert timed(passed=5.0, had=2.0, waits=1) == 5.0


def test_it_is_no_longer_than_the_clock_says(timed):
    assert timed(passed=5.0, had=5.1, waits=0) == 5.0


def test_it_is_told_finely_where_the_time_of_the_core_is_limited():
    """The kernel then counts a process's time by ticks, of which most calls see none."""
    code = inspect.getsource(module) + "\nresource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
    code += "print(sum(own_time(timeit.Timer('sum(range(500))')).timeit(1) > 0 for _ in range(200)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "200"


def test_sleeping_is_waiting():
    assert own_time(timeit.Timer(lambda: time.sleep(0.01))).timeit(1) >= 0.01


def test_the_setup_before_the_calls_is_no_part_of_them():
    timer = own_time(timeit.Timer("pass", "sum(range(1_000_000))"))
    assert timer.timeit(1) < 0.001


def test_a_clock_that_the_author_chose_is_kept():
    timer = timeit.Timer(lambda: None, timer=lambda: 7.0)
    assert own_time(timer) is timer
    assert timer.timeit(1) == 0.0
