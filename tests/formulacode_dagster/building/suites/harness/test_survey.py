"""A survey: which benchmarks it comes to first, when it ends, and what it calls lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient
from formulacode_dagster.models.errors import ItemFailure


@pytest.mark.slow
def test_variables_of_benchmark_runs_are_set_in_the_session(session, lay):
    suite = {"benchmarks/bench.py": "import os\n\nif os.environ.get('FC_SUITE') == 'yes':\n    def time_it(): pass\n"}
    lay(Path(session.repository), suite)
    for variables, expected in (({}, []), ({"FC_SUITE": "yes"}, ["bench.time_it"])):
        remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30, environment=variables)
        survey = remote.survey(lines={}, limit=1, budget=5)
        assert [benchmark.name for benchmark in survey.benchmarks] == expected


@pytest.mark.slow
def test_a_slow_import_leaves_the_whole_budget_to_the_benchmarks(session, lay):
    lay(Path(session.repository), {"benchmarks/bench.py": "import time\n\ntime.sleep(3)\n\ndef time_it(): pass\n"})
    survey = HarnessClient(session, benchmark_dir="benchmarks").survey(lines={}, limit=5, budget=2.9)
    assert [benchmark.outcome for benchmark in survey.benchmarks] == ["ran"]


SLOW = {
    "benchmarks/bench.py": """
import time

class Prepared:
    params = [60, 0]
    def setup(self, number):
        time.sleep(number)
    def time_first(self, number): pass
    def time_second(self, number): pass

class Call:
    def time_first(self):
        time.sleep(60)
    def time_second(self): pass
""",
}


@pytest.mark.slow
def test_a_setup_that_is_too_slow_is_run_once_for_its_class(session, lay):
    lay(Path(session.repository), SLOW)
    survey = HarnessClient(session, benchmark_dir="benchmarks").survey(lines={}, limit=1.5, budget=4)
    found = {each.name: (each.outcome, each.message) for each in survey.benchmarks}
    assert found["bench.Call.time_second"] == ("ran", "")
    assert found["bench.Call.time_first"] == ("timeout", "still running after 2 s")
    why = "not run, since bench.Prepared.time_first(60) was still running after 2 s, in the setup of its class"
    assert found["bench.Prepared.time_second(60)"] == ("timeout", why)
    assert [found[f"bench.Prepared.time_{which}(0)"] for which in ("first", "second")] == [("ran", "")] * 2


USING_UP = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def changed(items):\n    return items.pop()\n",
    "benchmarks/bench.py": """
from pkg import core

class Using:
    def setup(self):
        self.items = [1]
    def time_changed(self):
        core.changed(self.items)
    def time_other(self):
        self.items.pop()
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "results", "told"),
    [({"pkg/core.py": [2]}, False, {"time_changed"}), ({}, False, {"time_changed", "time_other"}), ({}, True, set())],
)
def test_whether_calls_depend_on_state_is_asked_of_what_may_be_timed(session, lay, lines, results, told):
    lay(Path(session.repository), USING_UP)
    survey = HarnessClient(session, benchmark_dir="benchmarks").survey(lines=lines, limit=5, budget=20, results=results)
    assert {each.outcome for each in survey.benchmarks} == {"ran"}
    assert {each.attribute for each in survey.benchmarks if each.isolate} == told


SLOWED = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def changed(items):\n    return items.pop()\n",
    "benchmarks/bench.py": """
import sys, time
from pkg import core

class Long:
    timeout = 1
    def time_long(self):
        time.sleep(2 if sys.gettrace() else 0)
        core.changed([1])

class Using:
    def setup(self):
        self.items = [1]
    def time_using(self):
        time.sleep(0.03 if sys.gettrace() else 0)
        core.changed(self.items)
""",
}


@pytest.mark.slow
def test_tracing_decides_neither_a_timeout_nor_whether_state_matters(session, lay):
    lay(Path(session.repository), SLOWED)
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30)
    found = {each.attribute: each for each in remote.survey(lines={"pkg/core.py": [2]}, limit=30, budget=20).benchmarks}
    assert (found["time_long"].outcome, found["time_long"].timeout) == ("ran", 1)
    assert (found["time_using"].outcome, found["time_using"].isolate) == ("ran", True)


SPEAKING = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def changed(n):\n    return n\n\n\ndef common(n):\n    return n\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench_a.py": """
from pkg.core import common

class TimeCommon:
    params = [1, 2, 3]
    def time_common(self, n):
        common(n)

def time_nothing():
    pass
""",
    "benchmarks/bench_b.py": """
from pkg import core

def time_beside():
    core.common(1)

class TimeChanged:
    params = [1, 2]
    def time_changed(self, n):
        core.changed(n)
""",
}


def test_relevant_benchmarks_come_first_one_of_each_before_combinations(session, lay):
    lay(Path(session.repository), SPEAKING)
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30)
    found = remote.survey(lines={}, limit=5, budget=0, selection=BenchmarkSelection(names={"changed", "common"}))
    assert [benchmark.name for benchmark in found.benchmarks] == [
        "bench_b.TimeChanged.time_changed(1)",
        "bench_b.time_beside",
        "bench_a.TimeCommon.time_common(1)",
        "bench_a.time_nothing",
        "bench_b.TimeChanged.time_changed(2)",
        "bench_a.TimeCommon.time_common(2)",
        "bench_a.TimeCommon.time_common(3)",
    ]


COMBINED = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def changed(n):\n    return n\n",
    "benchmarks/bench.py": """
from pkg import core

class TimeOther:
    \"\"\"Only mentions what is changed.\"\"\"
    params = [1, 2]
    def time_other(self, n):
        pass

class TimeChanged:
    params = [1, 2, 3, 4, 5]
    def time_first(self, n):
        core.changed(n)
    def time_second(self, n):
        core.changed(n)
""",
}


def test_combinations_of_what_executes_the_change_follow_by_halves(session, lay):
    lay(Path(session.repository), COMBINED)
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30)
    found = remote.survey(lines={"pkg/core.py": [2]}, limit=5, budget=20)
    assert [each.name.rpartition("_")[2] for each in found.benchmarks] == [
        *("other(1)", "first(1)", "second(1)"),
        *("first(3)", "second(3)", "first(4)", "second(4)", "first(2)", "second(2)", "first(5)", "second(5)"),
        "other(2)",
    ]


@pytest.mark.slow
def test_a_survey_continues_until_a_changed_line_is_executed(session, lay):
    lay(Path(session.repository), SPEAKING)
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30)

    def ran(line):
        survey = remote.survey(
            lines={"pkg/core.py": [line]}, limit=5, budget=60, selection=BenchmarkSelection(enough=1)
        )
        return sum(benchmark.outcome == "ran" for benchmark in survey.benchmarks)

    assert ran(6) == 1
    assert ran(2) == 4
    assert ran(99) == 7


@pytest.mark.slow
def test_a_module_that_never_ends_importing_is_lost(session, lay):
    lay(Path(session.repository), {"benchmarks/bench.py": "import time\nwhile True:\n    time.sleep(1)\n"})
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=2)
    survey = remote.survey(lines={}, limit=1, budget=20)
    assert "still importing after 1 s" in survey.lost["benchmarks.bench"]


def test_a_suite_may_be_in_the_root_of_the_repository(session, lay):
    lay(Path(session.repository), {"bench.py": "def time_it(): pass\n"})
    survey = HarnessClient(session, benchmark_dir=".").survey(lines={}, limit=5, budget=5)
    assert [(each.name, each.outcome) for each in survey.benchmarks] == [("bench.time_it", "ran")]


def test_a_suite_that_is_not_there_is_lost_by_name(session):
    survey = HarnessClient(session, benchmark_dir="benchmarks").survey(lines={}, limit=1, budget=5)
    assert set(survey.lost) == {"benchmarks"}


def test_an_interpreter_that_does_not_answer_is_a_failure(session):
    session.python = shutil.which("false")
    with pytest.raises(ItemFailure) as failure:
        HarnessClient(session, benchmark_dir="benchmarks").survey(lines={}, limit=1, budget=5)
    assert failure.value.kind == "benchmarks_fail"


@pytest.mark.slow
def test_a_thread_that_a_suite_leaves_does_not_hold_up_the_end(session, lay):
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\ndef time_it(): pass\n"
    lay(Path(session.repository), {"benchmarks/bench.py": source})
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=20)
    assert [each.outcome for each in remote.survey(lines={}, limit=1, budget=10).benchmarks] == ["ran"]


def test_compiled_modules_of_the_standard_library_are_no_extensions(session, lay):
    lay(Path(session.repository), {"benchmarks/bench.py": "import array, json, _json\ndef time_it(): pass\n"})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    assert not {"array", "_json", "math"} & {*remote.survey(lines={}, limit=1, budget=10).extensions}
