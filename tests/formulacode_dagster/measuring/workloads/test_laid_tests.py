"""The repository's own tests, as they run as generated benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.workloads.overlay import suite_files
from formulacode_dagster.measuring.workloads.own_tests import OwnTest
from tests.records import make_spec
from tests.support.measurement import take

FILES = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def total(n):\n    return sum(range(n))\n",
    "benchmarks/__init__.py": "",
}
LINES = {"pkg/core.py": [2]}


def written(tests):
    return suite_files({test.function: [test.name] for test in tests}, make_spec(benchmark_dir="benchmarks"))


@pytest.mark.slow
def test_a_file_that_cannot_be_collected_costs_the_others_nothing(session, lay):
    files = {"tests/test_broken.py": "import not_there\n", "tests/test_good.py": "def test_good():\n    pass\n"}
    tests = [OwnTest(f"tests/test_{name}.py", f"test_{name}", 1.0) for name in ("broken", "good", "2")]
    lay(Path(session.repository), {**files, "benchmarks/__init__.py": ""})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write(written(tests))
    survey = remote.survey(lines={}, limit=10, budget=30)
    outcomes = {benchmark.owner: benchmark.outcome for benchmark in survey.benchmarks}
    assert outcomes == {
        "tests_test_broken_test_broken": "error",
        "tests_test_good_test_good": "ran",
        "tests_test_2_test_2": "error",
    }


@pytest.mark.slow
def test_whatever_a_file_raises_when_it_is_loaded_the_others_are_collected(session, lay):
    raised = ("pytest.exit('not here')", "pytest.skip('not here')", "sys.exit(3)")
    broken = {f"tests_{n}/conftest.py": f"import pytest, sys\n{each}\n" for n, each in enumerate(raised)}
    modules = {f"tests_{n}/test_it.py": "def test_it():\n    pass\n" for n in range(len(raised))}
    ending = {"tests/test_exit.py": "import sys\nsys.exit(3)\n", "tests/test_good.py": "def test_it():\n    pass\n"}
    files = {**broken, **modules, **ending}
    lay(Path(session.repository), {**files, "benchmarks/__init__.py": ""})
    tests = [OwnTest(path, "test_it", 1.0) for path in (*modules, *ending)]
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write(written(tests))
    survey = remote.survey(lines={}, limit=10, budget=30)
    assert survey.lost == {}
    outcomes = {benchmark.owner: benchmark.outcome for benchmark in survey.benchmarks}
    assert outcomes.pop("tests_test_good_test_it") == "ran"
    assert len(outcomes) == 4
    assert set(outcomes.values()) == {"error"}


CLEANED = """
import unittest
from pkg import core

OPEN = []


class TestCleaned(unittest.TestCase):
    def setUp(self):
        assert OPEN == []
        OPEN.append(1)
        self.addCleanup(OPEN.clear)

    def test_total(self):
        core.total(100_000)
"""


@pytest.mark.slow
def test_what_a_test_of_unittest_opened_is_closed_before_the_next_call(session, lay):
    lay(Path(session.repository), {**FILES, "tests/test_core.py": CLEANED})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write(written([OwnTest("tests/test_core.py", "TestCleaned::test_total", 1.0)]))
    (benchmark,) = remote.survey(lines=LINES, limit=10, budget=30).benchmarks
    assert take(remote, benchmark, 0.01).calls > 1


HANDING = """
import time
from pkg import core


def test_handed(benchmark):
    time.sleep(0.2)
    assert benchmark(core.total, 1000) == 499500


def test_pedantic(benchmark):
    made = []
    benchmark.pedantic(made.pop, setup=lambda: made.append(time.sleep(0.2)))


def test_nothing_handed(benchmark):
    core.total(3)
"""


@pytest.mark.slow
def test_only_the_call_of_the_benchmark_fixture_is_timed(session, lay):
    tests = [
        OwnTest("tests/test_handing.py", name, 1.0) for name in ("test_handed", "test_pedantic", "test_nothing_handed")
    ]
    # the configuration of the tests would put the checkout before what is installed
    sources = {"pytest.ini": "[pytest]\npythonpath = src\n", "src/pkg/__init__.py": "raise RuntimeError('sources')\n"}
    files = {**FILES, **sources, "tests/test_handing.py": HANDING}
    lay(Path(session.repository), files)
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write(written(tests))
    survey = remote.survey(lines=LINES, limit=10, budget=30, results=True)
    benchmarks = {benchmark.attribute + benchmark.name.partition("'")[2]: benchmark for benchmark in survey.benchmarks}
    outcomes = {name: benchmark.outcome for name, benchmark in benchmarks.items()}
    assert outcomes["time_calltest_handed')"] == "ran"
    assert outcomes["time_calltest_pedantic')"] == "ran"
    assert outcomes["time_calltest_nothing_handed')"] == "skipped"
    assert all(benchmark.seconds < 0.15 for benchmark in benchmarks.values())
    assert benchmarks["time_calltest_handed')"].lines == {"pkg/core.py": (2,)}
    returned = benchmarks["time_calltest_handed')"].returned
    assert (returned.type, returned.is_none) == ("int", False), "it can be compared with what it is after the patch"
