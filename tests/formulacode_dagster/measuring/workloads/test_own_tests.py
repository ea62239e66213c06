"""The repository's own tests as benchmarks."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from formulacode_dagster.building.suites.patching import apply_patch
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.correctness.runs import TestRun
from formulacode_dagster.measuring.workloads import own_tests
from formulacode_dagster.measuring.workloads.own_tests import suites_of_tests
from formulacode_dagster.measuring.workloads.sides import Sides
from formulacode_dagster.models.measurement import Source
from tests.support.measurement import take

CORE = "def total(n):\n    return sum(range(n))\n\n\ndef untouched():\n    return 1\n"
TESTS = """
import os
import time
import unittest

import pytest
from pkg import core


@pytest.fixture
def numbers(tmp_path):
    time.sleep(0.05)
    yield [500_000]


@pytest.mark.parametrize("times", [1, 2])
def test_total(numbers, times):
    # each call finds fixtures of its own
    assert len(numbers) == 1
    numbers.append(0)
    for _ in range(times):
        core.total(numbers[0])


class TestInClass(unittest.TestCase):
    def setUp(self):
        time.sleep(0.05)
        self.n = 500_000

    def test_total(self):
        core.total(self.n)


def test_short(numbers):
    core.total(3)


class TestShort(unittest.TestCase):
    def setUp(self):
        time.sleep(0.01)

    def test_short(self):
        core.total(3)


@pytest.fixture
def total():
    return core.total(3)


def test_of_what_its_fixture_calls(total):
    time.sleep(0.01)


def test_untouched():
    time.sleep(0.01)
    core.untouched()


def test_that_fails():
    time.sleep(0.01)
    core.total(3)
    assert os is None


@pytest.fixture(params=[3])
def skipping(request):
    pytest.skip("not here")


def test_skipped(skipping):
    core.total(3)
"""
FILES = {
    "pkg/__init__.py": "",
    "pkg/core.py": CORE,
    "tests/test_core.py": TESTS,
    "benchmarks/bench.py": "def time_nothing():\n    pass\n",
}
FASTER = {"pkg/core.py": CORE.replace("sum(range(n))", "n * (n - 1) // 2")}
LINES = {"pkg/core.py": [2]}


@pytest.fixture
def looked(tmp_path, git_patch, engine_of, image):
    """The suite of tests for the change into *after*, that of *number*, and a session of the base."""

    def run(after=FASTER, files=FILES, lines=LINES, benchmark_dir="benchmarks", number=0, is_compiled=False):
        source = tmp_path / "source"
        source.mkdir()
        patch = git_patch(source, files, after)
        engine = engine_of(source)
        spec = image.spec.model_copy(update={"package_name": "pkg", "benchmark_dir": benchmark_dir})
        task = image.model_copy(update={"spec": spec})
        base, oracle = (run.stack.enter_context(engine.session(task, run_id="run")) for _ in range(2))
        apply_patch(oracle, patch)
        sides = Sides(engine, task, (base, oracle), (lines, lines), "run", is_compiled)
        suites = suites_of_tests(sides, patch=patch, commit="b" * 40, merged="c" * 40, note=run.notes.append)
        return next(itertools.islice(suites, number, None), None), base

    run.notes = []
    with ExitStack() as run.stack:
        yield run


@pytest.mark.slow
def test_tests_that_reach_the_change_become_benchmarks_with_fixtures(looked):
    suite, session = looked()
    assert (suite.source, suite.commit) == (Source.OWN_TESTS, "b" * 40)
    assert set(suite.adapted) == {
        "tests/test_core.py: test_total[1]",
        "tests/test_core.py: test_total[2]",
        "tests/test_core.py: TestInClass::test_total",
    }
    # looking leaves the sessions that are timed as they were
    assert not Path(session.repository, "benchmarks/own_tests.py").exists()
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write(suite.files)
    survey = remote.survey(lines=LINES, limit=10, budget=30)
    assert not [benchmark.message for benchmark in survey.benchmarks if benchmark.message]
    assert {benchmark.name: (benchmark.outcome, benchmark.lines) for benchmark in survey.benchmarks} == {
        f"own_tests.tests_test_core_{name}": ("ran", {"pkg/core.py": (2,)})
        for name in (
            "test_total.time_call('test_total[1]')",
            "test_total.time_call('test_total[2]')",
            "TestInClass_test_total.time_call('TestInClass::test_total')",
        )
    }
    for benchmark in survey.benchmarks:
        timed = take(remote, benchmark, 0.05)
        assert timed.calls > 1
        assert timed.value < 0.05


@pytest.mark.slow
def test_tests_about_compiled_code_are_benchmarks_without_line_evidence(looked):
    suite, _ = looked(lines={}, is_compiled=True)
    # all of them speak of `core`, but two fail or skip
    assert {test.partition(": ")[2] for test in suite.adapted} == {
        "test_total[1]",
        "test_total[2]",
        "TestInClass::test_total",
        "test_untouched",
    }


@pytest.mark.slow
def test_tests_that_execute_the_python_part_of_a_change_come_first(looked, monkeypatch):
    monkeypatch.setattr(own_tests, "MOST_TESTS", 3)
    suite, _ = looked(is_compiled=True)
    assert {test.partition(": ")[2] for test in suite.adapted} == {
        "test_total[1]",
        "test_total[2]",
        "TestInClass::test_total",
    }


@pytest.mark.slow
def test_without_a_test_that_executes_the_change_there_is_no_suite(looked):
    suite, _ = looked(files={**FILES, "tests/test_core.py": TESTS.replace("core.total(", "str(")})
    assert suite is None
    assert looked.notes[-1] == "0 of its own tests execute the change, and 0 of them take long enough"


@pytest.mark.slow
def test_tests_that_end_their_process_are_told_and_no_suite(looked):
    suite, _ = looked(files={**FILES, "tests/test_core.py": "import os\nos._exit(3)\n"})
    assert suite is None
    assert "broke off" in looked.notes[-1]


@pytest.mark.parametrize("cores", [1, 2])
def test_both_sides_are_run_at_the_same_time_where_each_has_a_core(looked, monkeypatch, cores):
    barrier = threading.Barrier(cores, timeout=20)

    def meeting(_runner, **_asked):
        barrier.wait()
        return TestRun()

    monkeypatch.setattr(own_tests.TestRunner, "run", meeting)
    monkeypatch.setattr(HarnessClient, "core_count", cores)
    assert looked()[0] is None
    assert looked.notes[-1] == "0 of its own tests execute the change, and 0 of them take long enough"


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (TestRun(no_time=True), "there was no time for all of them"),
        (TestRun(is_enough=True), "that is enough, and others were not run"),
    ],
)
def test_it_is_told_why_not_all_tests_were_run(looked, monkeypatch, run, told):
    monkeypatch.setattr(own_tests.TestRunner, "run", lambda _runner, **_asked: run)
    assert looked()[0] is None
    assert looked.notes[-1].partition("; ")[2] == told


@pytest.mark.parametrize(("lines", "folder"), [({}, "benchmarks"), (LINES, ".")])
def test_no_test_is_run_without_changed_python_or_an_overlay(looked, lines, folder):
    assert looked(lines=lines, benchmark_dir=folder)[0] is None
    assert looked.notes == []


@pytest.mark.slow
def test_tests_that_the_pull_request_brings_are_laid_over_every_arm(looked):
    new = "import time\nfrom pkg import core\n\n\ndef test_new():\n    time.sleep(0.01)\n    core.total(9)\n"
    suite, session = looked({**FASTER, "tests/test_new.py": new, "tests/test_core.py": None})
    assert suite.adapted == ("tests/test_new.py: test_new",)
    assert suite.commit == "c" * 40, "the base does not have that file"
    assert suite.files["tests/test_new.py"] == new.encode()
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write(suite.files)
    (benchmark,) = remote.survey(lines=LINES, limit=10, budget=30).benchmarks
    assert (benchmark.outcome, benchmark.lines) == ("ran", {"pkg/core.py": (2,)})


NEW = "\n\ndef test_new():\n    core.total(600_000)\n"
INSIDE = {
    **{path: text for path, text in FILES.items() if not path.startswith("tests/")},
    "pkg/tests/__init__.py": "",
    "pkg/tests/test_core.py": TESTS,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "names"),
    [
        (f"{TESTS}{NEW}", ["TestInClass::test_total", "test_total[1]", "test_total[2]"]),
        (TESTS.replace("self.n = 500_000", "self.n = 600_000"), ["test_total[1]", "test_total[2]"]),
        (TESTS.replace("yield [500_000]", "yield [600_000]"), None),
    ],
    ids=["one is added", "a class is another", "a fixture is another"],
)
def test_unchanged_tests_of_a_changed_file_in_the_package_are_benchmarks(looked, tests, names):
    suite, _ = looked({**FASTER, "pkg/tests/test_core.py": tests}, files=INSIDE)
    assert names == (suite and sorted(test.partition(": ")[2] for test in suite.adapted))


@pytest.mark.slow
def test_package_code_is_not_overlaid_despite_a_testing_folder(looked):
    before = {"pkg/testing/__init__.py": "", "pkg/testing/data.py": "SIZE = 1\n", "tests/data.txt": "before\n"}
    after = {**FASTER, "pkg/testing/data.py": "SIZE = 2\n", "tests/data.txt": "after\n"}
    suite, _ = looked(after, files={**FILES, **before})
    assert {path for path in suite.files if not path.startswith("benchmarks/")} == {"tests/data.txt"}


SLOWED = """
import sys
import time
from pkg import core


def test_long():
    time.sleep(0.08)
    core.total(3)


SLOWED = []


def test_that_tracing_slows():
    n = 5
    if sys.gettrace() and not SLOWED:
        SLOWED.append(time.sleep(0.1))
    assert core.total(n) == sum(range(n))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "tests"), [(0, ["test_long"]), (1, None)])
def test_a_test_does_not_take_long_enough_because_it_is_traced(looked, monkeypatch, number, tests):
    monkeypatch.setattr(own_tests, "LEAST_SECONDS", 0.06)
    suite, _ = looked(files={**FILES, "tests/test_core.py": SLOWED}, number=number)
    assert tests == (suite and [name.partition(": ")[2] for name in suite.adapted])


SHORT = """
import time
from pkg import core


def test_long():
    time.sleep(0.08)
    core.total(3)


def test_short():
    n = 5000
    assert core.total(n) == sum(range(n))


def test_that_knows_its_answer():
    assert core.total(9000) == 40495500


def test_of_untouched_code():
    n = 5000
    assert list(range(n)) and core.untouched()
"""


@pytest.mark.slow
def test_short_tests_are_grown_until_they_take_long_enough_and_still_pass(looked, monkeypatch):
    # far above what a busy machine takes for the short ones
    monkeypatch.setattr(own_tests, "LEAST_SECONDS", 0.06)
    suite, session = looked(files={**FILES, "tests/test_core.py": SHORT}, number=1)
    assert (suite.source, suite.commit) == (Source.SCALED_TESTS, "b" * 40)
    short, knowing = sorted(suite.adapted)
    # which factor it takes is the machine's
    assert short.startswith("tests/test_core.py: test_short | sizes x")
    # what its assertion does not allow to grow is repeated
    assert knowing.startswith("tests/test_core.py: test_that_knows_its_answer | repeats x")
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write(suite.files)
    survey = remote.survey(lines=LINES, limit=10, budget=30)
    outcomes = [(benchmark.outcome, benchmark.lines) for benchmark in survey.benchmarks]
    assert outcomes == [("ran", {"pkg/core.py": (2,)})] * 2
    assert all(benchmark.seconds > 0.002 for benchmark in survey.benchmarks)
