"""The repository's own tests that are workloads, by the results of their runs."""

from __future__ import annotations

from operator import attrgetter

import pytest

from formulacode_dagster.measuring.correctness.runs import EndedTest, TestRun
from formulacode_dagster.measuring.workloads.line_cover import covering_first
from formulacode_dagster.measuring.workloads.own_tests import OwnTest, relevant_tests, speaking_of


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
def test_a_test_is_a_workload_if_it_passes_twice_and_reaches_the_change(base, oracle, relevant):
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


def test_those_that_execute_other_lines_of_the_change_come_first():
    lines = {"array": (1, 2), "same": (1, 2), "none": (), "scalar": (1, 3, 4), "rest": (2, 5)}
    tests = [OwnTest("f.py", name, 1.0, frozenset((0, "a.py", at) for at in of)) for name, of in lines.items()]
    ordered = covering_first(tests, attrgetter("lines"))
    assert [test.name for test in ordered] == ["scalar", "rest", "array", "same", "none"]
    assert covering_first([], attrgetter("lines")) == []


def test_the_longest_come_first_and_functions_before_second_parameters():
    seconds = {"f.py::a[1]": 3.0, "f.py::a[2]": 2.0, "f.py::b": 1.0}
    run = run_of(**{name: {**AIMED, "call_seconds": each} for name, each in seconds.items()})
    assert list(relevant_tests(run, run)) == ["f.py::a[1]", "f.py::b", "f.py::a[2]"]
