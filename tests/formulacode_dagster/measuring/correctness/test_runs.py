from __future__ import annotations

import re

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.measuring.correctness import runs
from formulacode_dagster.measuring.correctness.runs import TestRun, TestRunner, joined
from formulacode_dagster.models.correctness import RunOutcome
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from tests.records import make_spec

SPEC = make_spec(package_name="", benchmark_dir="benchmarks")
ENDING = """
import os, time


def test_first():
    pass


def test_that_hangs():
    time.sleep(60)


def test_that_ends_the_process():
    os._exit(3)


def test_last():
    pass
"""


@pytest.mark.slow
def test_a_test_that_hangs_or_ends_the_process_takes_no_other_with_it(session, lay, monkeypatch) -> None:
    monkeypatch.setattr(runs, "TEST_SECONDS", 0.3)
    lay(session.folder / "repository", {"test_a.py": ENDING, "test_b.py": "import not_there\n"})
    run = TestRunner(session, SPEC).run(hash_seed=1)
    assert {name.partition("::")[2]: test.outcome for name, test in run.tests.items()} == {
        "test_first": RunOutcome.PASSED,
        "test_that_hangs": RunOutcome.TIMEOUT,
        "test_that_ends_the_process": RunOutcome.CRASH,
        "test_last": RunOutcome.PASSED,
    }
    assert "not_there" in run.uncollected["test_b.py"]
    again = TestRunner(session, SPEC).run(hash_seed=1, named=["test_a.py::test_last"])
    assert list(again.tests) == ["test_a.py::test_last"]


def test_processes_after_one_that_a_test_ended_have_the_rest_of_the_budget(session, monkeypatch) -> None:
    budgets, ended = [], iter([200.0, 250.0])

    def ask(_remote, request, *, timeout, **_):
        budgets.append((request["budget"], timeout))
        seconds = next(ended, None)
        if seconds is None:
            return Completed(0, b"", b"", 1.0), [{"event": "no_time"}, {"event": "end"}]
        return Completed(-9, b"", b"", seconds), [{"event": "started", "name": f"test_{len(budgets)}"}]

    monkeypatch.setattr(runs.HarnessClient, "ask", ask)
    run = TestRunner(session, SPEC, budget=300.0).run(hash_seed=1)
    assert budgets == [(300.0, 620.0), (100.0, 420.0), (0.0, 320.0)]
    assert {test.outcome for test in run.tests.values()} == {RunOutcome.CRASH}
    assert run.no_time


@pytest.mark.slow
def test_tests_are_found_if_pytest_is_configured_in_their_folder(session, lay) -> None:
    """Its root is that folder then, and its names are relative to it, as those of rich's tests are."""
    passing = "def test_it():\n    pass\n"
    files = {"tests/pytest.ini": "[pytest]\n", "tests/test_a.py": passing, "tests/deep/test_b.py": passing}
    lay(session.folder / "repository", files)
    run = TestRunner(session, SPEC).run(hash_seed=1)
    assert sorted(run.tests) == ["tests/deep/test_b.py::test_it", "tests/test_a.py::test_it"]
    again = TestRunner(session, SPEC).run(hash_seed=2, named=["tests/deep/test_b.py::test_it"])
    assert list(again.tests) == ["tests/deep/test_b.py::test_it"]


CALLED = """
import time
import unittest

import pytest
from pkg import core


@pytest.fixture
def made():
    time.sleep(0.05)
    yield core.one()
    core.three()


def test_call(made):
    core.two()


class TestCase(unittest.TestCase):
    def setUp(self):
        time.sleep(0.05)
        core.one()

    def tearDown(self):
        core.three()

    def test_call(self):
        core.two()

    @unittest.skip("not here")
    def test_skipped(self):
        core.two()
"""


@pytest.mark.slow
def test_a_tests_call_is_reported_separately_from_its_total(session, lay) -> None:
    functions = "".join(f"def {name}():\n    pass\n" for name in ("one", "two", "three"))
    lay(session.folder / "repository", {"pkg/__init__.py": "", "pkg/core.py": functions, "test_a.py": CALLED})
    run = TestRunner(session, SPEC).run(hash_seed=1, watched={"pkg/core.py": [2, 4, 6]})
    skipped = run.tests.pop("test_a.py::TestCase::test_skipped")
    assert (skipped.outcome, skipped.call_lines) == (RunOutcome.SKIPPED, {})
    assert len(run.tests) == 2
    for test in run.tests.values():
        assert test.outcome is RunOutcome.PASSED
        assert test.lines == {"pkg/core.py": {2, 4, 6}}
        assert test.call_lines == {"pkg/core.py": {4}}
        assert test.call_seconds < 0.05 <= test.seconds


MANY = """
import time

import pytest
from pkg import core


@pytest.mark.parametrize("n", range(6))
def test_long(n):
    core.work(0.02)


def test_short():
    core.work(0)


def test_that_fails():
    core.work(0.02)
    assert False


def test_of_something_else():
    time.sleep(0.02)


def test_last():
    core.work(0.02)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("enough", "executed"), [(0, 10), (3, 3), (7, 10)])
def test_no_test_begins_once_enough_execute_the_change_long_enough(session, lay, enough, executed) -> None:
    # a call counts if it takes twice the required time, by waiting: no machine is too fast for it
    source = "import time\n\ndef work(seconds):\n    time.sleep(seconds)\n"
    lay(session.folder / "repository", {"pkg/__init__.py": "", "pkg/core.py": source, "test_a.py": MANY})
    runner = TestRunner(session, SPEC, enough=enough, least=0.01)
    run = runner.run(hash_seed=1, watched={"pkg/core.py": [4]})
    assert (len(run.tests), run.is_enough, run.no_time) == (executed, executed < 10, False)


@pytest.mark.slow
def test_tests_that_all_end_the_process_are_given_up(session, lay) -> None:
    lay(session.folder / "repository", {"test_a.py": "import os\nos._exit(7)\n"})
    with pytest.raises(ItemFailure) as failed:
        TestRunner(session, SPEC).run(hash_seed=1)
    assert failed.value.kind is FailureKind.TESTS_DO_NOT_RUN
    assert "status 7" in str(failed.value)


def test_the_number_of_files_is_limited_relevant_ones_first(session, lay, monkeypatch) -> None:
    monkeypatch.setattr(runs, "MOST_FILES", 1)
    empty = "def test_it():\n    pass\n"
    lay(session.folder / "repository", {"test_a.py": empty, "test_b.py": f"# of the triangles\n{empty}"})
    run = TestRunner(session, SPEC).run(hash_seed=1, words=["triangles"])
    assert list(run.tests) == ["test_b.py::test_it"]
    assert run.left_out == 1


def test_a_file_named_after_a_module_precedes_those_with_rare_words(session, lay, monkeypatch) -> None:
    monkeypatch.setattr(runs, "MOST_FILES", 1)
    passing = "def test_it():\n    pass\n"
    files = {"tests/test_a.py": f"# until the triangles\n{passing}", "pkg/tests/test_shapes.py": passing}
    lay(session.folder / "repository", files)
    run = TestRunner(session, SPEC).run(hash_seed=1, words=["shapes", "triangles", "until"])
    assert list(run.tests) == ["pkg/tests/test_shapes.py::test_it"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\npython_files = "test*.py"\n'),
        ("pyproject.toml", '[tool.pytest.ini_options]\npython_files = [\n  "check*.py", # ours\n  "test*.py",\n]\n'),
        ("setup.cfg", "[tool:pytest]\npython_files =\n    test*.py\naddopts = -q\n"),
        ("tox.ini", "[pytest]\npython_files = checks/*.py tests/*.py\n"),
    ],
)
def test_files_that_the_configuration_names_are_tests_as_are_params(session, lay, name: str, text: str) -> None:
    lay(session.folder / "repository", {name: text, "tests/testshapes.py": "def test_it():\n    pass\n"})
    assert list(TestRunner(session, SPEC).run(hash_seed=1).tests) == ["tests/testshapes.py::test_it"]


@pytest.mark.parametrize(
    ("conftest", "told"),
    [
        ("import not_there\n", "did not start: .*not_there"),
        ("import pytest\n\ndef pytest_configure():\n    raise pytest.UsageError('no data here')\n", "no data here"),
        (
            "def pytest_sessionstart():\n    raise ValueError('a broken plugin')\n",
            "an error of its own: .*broken plugin",
        ),
    ],
)
def test_a_pytest_that_ends_before_any_test_says_why(session, lay, conftest: str, told: str) -> None:
    lay(session.folder / "repository", {"conftest.py": conftest, "test_a.py": "def test_it():\n    pass\n"})
    run = TestRunner(session, SPEC).run(hash_seed=1)
    assert not run.tests
    assert re.search(told, run.uncollected["pytest"], re.DOTALL)


@pytest.mark.parametrize(("configured", "backend"), [({}, "Agg"), ({"MPLBACKEND": "svg"}, "svg")])
def test_nothing_that_runs_opens_a_window_as_matplotlib_2_would(session, lay, configured, backend: str) -> None:
    test = f"import os\n\ndef test_it():\n    assert os.environ['MPLBACKEND'] == '{backend}'\n"
    lay(session.folder / "repository", {"test_a.py": test})
    spec = SPEC.model_copy(update={"run_environment": configured})
    (ended,) = TestRunner(session, spec).run(hash_seed=1).tests.values()
    assert ended.outcome is RunOutcome.PASSED, ended.message


def test_a_repository_without_tests_runs_none(session) -> None:
    assert TestRunner(session, SPEC).run(hash_seed=1) == TestRun()


@pytest.mark.parametrize(
    "answer",
    [
        {"event": "test", "name": "t"},
        {"event": "test", "name": "t", "outcome": "superb", "seconds": 1.0, "message": ""},
        {"event": "executable", "path": "a.py"},
        {"event": "imported", "lines": 3},
    ],
)
def test_what_makes_no_sense_fails_by_name(answer: dict[str, object]) -> None:
    with pytest.raises(ItemFailure) as failed:
        joined(TestRun(), [answer])
    assert failed.value.kind is FailureKind.TESTS_DO_NOT_RUN
