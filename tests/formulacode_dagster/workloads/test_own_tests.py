"""The repository's own tests as benchmarks."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from formulacode_dagster.correctness.runs import EndedTest, TestRun
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.suites.patching import apply_patch
from formulacode_dagster.suites.remote import Remote
from formulacode_dagster.workloads import own_tests
from formulacode_dagster.workloads.laying import suite_files
from formulacode_dagster.workloads.own_tests import OwnTest, relevant_tests, speaking_of, suites_of_tests
from formulacode_dagster.workloads.sides import Sides
from tests.records import make_spec
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


def written(tests):
    return suite_files({test.function: [test.name] for test in tests}, make_spec(benchmark_dir="benchmarks"))


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
def test_tests_that_execute_the_change_are_benchmarks_with_their_fixtures_outside_of_the_clock(looked):
    suite, session = looked()
    assert (suite.source, suite.commit) == (Source.OWN_TESTS, "b" * 40)
    assert set(suite.adapted) == {
        "tests/test_core.py: test_total[1]",
        "tests/test_core.py: test_total[2]",
        "tests/test_core.py: TestInClass::test_total",
    }
    # looking leaves the sessions that are timed as they were
    assert not Path(session.repository, "benchmarks/own_tests.py").exists()
    remote = Remote(session, benchmark_dir="benchmarks")
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
def test_of_compiled_code_tests_that_speak_of_it_are_benchmarks_though_no_line_tells(looked):
    suite, _ = looked(lines={}, is_compiled=True)
    # all of them speak of `core`, but two fail or skip
    assert {test.partition(": ")[2] for test in suite.adapted} == {
        "test_total[1]",
        "test_total[2]",
        "TestInClass::test_total",
        "test_untouched",
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
    monkeypatch.setattr(Remote, "core_count", cores)
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
def test_where_no_line_of_python_changed_or_nothing_can_be_laid_no_test_is_run(looked, lines, folder):
    assert looked(lines=lines, benchmark_dir=folder)[0] is None
    assert looked.notes == []


@pytest.mark.slow
def test_tests_that_the_pull_request_brings_are_laid_over_every_arm(looked):
    new = "import time\nfrom pkg import core\n\n\ndef test_new():\n    time.sleep(0.01)\n    core.total(9)\n"
    suite, session = looked({**FASTER, "tests/test_new.py": new, "tests/test_core.py": None})
    assert suite.adapted == ("tests/test_new.py: test_new",)
    assert suite.commit == "c" * 40, "the base does not have that file"
    assert suite.files["tests/test_new.py"] == new.encode()
    remote = Remote(session, benchmark_dir="benchmarks")
    remote.write(suite.files)
    (benchmark,) = remote.survey(lines=LINES, limit=10, budget=30).benchmarks
    assert (benchmark.outcome, benchmark.lines) == ("ran", {"pkg/core.py": (2,)})


@pytest.mark.slow
def test_a_file_that_cannot_be_collected_costs_the_others_nothing(session, lay):
    files = {"tests/test_broken.py": "import not_there\n", "tests/test_good.py": "def test_good():\n    pass\n"}
    tests = [OwnTest(f"tests/test_{name}.py", f"test_{name}", 1.0) for name in ("broken", "good", "2")]
    lay(Path(session.repository), {**files, "benchmarks/__init__.py": ""})
    remote = Remote(session, benchmark_dir="benchmarks")
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
    remote = Remote(session, benchmark_dir="benchmarks")
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
    remote = Remote(session, benchmark_dir="benchmarks")
    remote.write(written([OwnTest("tests/test_core.py", "TestCleaned::test_total", 1.0)]))
    (benchmark,) = remote.survey(lines=LINES, limit=10, budget=30).benchmarks
    assert take(remote, benchmark, 0.01).calls > 1


@pytest.mark.slow
def test_code_of_the_package_is_laid_nowhere_though_a_folder_is_named_for_testing(looked):
    before = {"pkg/testing/__init__.py": "", "pkg/testing/data.py": "SIZE = 1\n", "tests/data.txt": "before\n"}
    after = {**FASTER, "pkg/testing/data.py": "SIZE = 2\n", "tests/data.txt": "after\n"}
    suite, _ = looked(after, files={**FILES, **before})
    assert {path for path in suite.files if not path.startswith("benchmarks/")} == {"tests/data.txt"}


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
    remote = Remote(session, benchmark_dir="benchmarks")
    remote.write(suite.files)
    survey = remote.survey(lines=LINES, limit=10, budget=30)
    outcomes = [(benchmark.outcome, benchmark.lines) for benchmark in survey.benchmarks]
    assert outcomes == [("ran", {"pkg/core.py": (2,)})] * 2
    assert all(benchmark.seconds > 0.002 for benchmark in survey.benchmarks)


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
def test_of_a_test_with_the_benchmark_fixture_only_what_it_hands_over_is_timed(session, lay):
    tests = [
        OwnTest("tests/test_handing.py", name, 1.0) for name in ("test_handed", "test_pedantic", "test_nothing_handed")
    ]
    # the configuration of the tests would put the checkout before what is installed
    sources = {"pytest.ini": "[pytest]\npythonpath = src\n", "src/pkg/__init__.py": "raise RuntimeError('sources')\n"}
    files = {**FILES, **sources, "tests/test_handing.py": HANDING}
    lay(Path(session.repository), files)
    remote = Remote(session, benchmark_dir="benchmarks")
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


def run_of(**tests):
    return TestRun(tests={name: EndedTest(name=name, **facts) for name, facts in tests.items()})


AIMED = {"outcome": "passed", "call_seconds": 1.0, "call_lines": {"a.py": frozenset({1})}}
OF_FIXTURES = {"outcome": "passed", "seconds": 1.0, "lines": {"a.py": frozenset({1})}}


@pytest.mark.parametrize(
    ("base", "oracle", "relevant"),
    [
        pytest.param(AIMED, AIMED, True, id="on both"),
        pytest.param(AIMED, {**AIMED, "call_lines": {}}, True, id="lines of one side"),
        pytest.param({**AIMED, "call_lines": {}}, {**AIMED, "call_lines": {}}, False, id="no line"),
        pytest.param(OF_FIXTURES, OF_FIXTURES, False, id="lines of a fixture alone"),
        pytest.param(AIMED, {**AIMED, "outcome": "failed"}, False, id="fails after"),
        pytest.param({**AIMED, "outcome": "skipped"}, AIMED, False, id="skipped before"),
    ],
)
def test_a_test_is_a_workload_when_it_passes_on_both_sides_and_executes_the_change(base, oracle, relevant):
    assert bool(relevant_tests(run_of(t=base), run_of(t=oracle))) is relevant


def test_the_longer_of_two_runs_tells_whether_a_test_takes_long_enough():
    # one that the patch makes short stays a workload
    assert relevant_tests(run_of(t=AIMED), run_of(t={**AIMED, "call_seconds": 0.0})) == {"t": 1.0}
    # fixtures are set up before the clock starts
    assert relevant_tests(run_of(t={**AIMED, "seconds": 3.0}), run_of(t=AIMED)) == {"t": 1.0}


def test_a_test_of_one_side_is_no_workload():
    assert relevant_tests(run_of(t=AIMED), TestRun()) == {}


def test_of_compiled_code_those_tests_count_that_speak_most_of_the_change():
    run = run_of(
        **{f"f.py::{name}": {**AIMED, "call_lines": {}} for name in ("test_one", "test_two", "Case::test_none")}
    )
    assert relevant_tests(run, run) == {}
    assert set(relevant_tests(run, run, is_compiled=True)) == set(run.tests)
    source = b"""
def test_one():
    contains_xy(1)


def test_two():
    prepare(contains_xy)


class Case:
    def test_none(self):
        intersects(1)
"""
    tests = [OwnTest("f.py", name.partition("::")[2], 1.0) for name in run.tests]
    names = [test.name for test in speaking_of(tests, {"f.py": source}, {"contains_xy", "prepare", "PyObject"})]
    assert names == ["test_two", "test_one"]
    assert speaking_of(tests, {"f.py": b"def ("}, {"contains_xy"}) == []


def test_the_longest_come_first_and_each_function_before_its_second_parameters():
    seconds = {"f.py::a[1]": 3.0, "f.py::a[2]": 2.0, "f.py::b": 1.0}
    run = run_of(**{name: {**AIMED, "call_seconds": each} for name, each in seconds.items()})
    assert list(relevant_tests(run, run)) == ["f.py::a[1]", "f.py::b", "f.py::a[2]"]
