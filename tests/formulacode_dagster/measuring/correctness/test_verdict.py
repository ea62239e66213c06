from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from formulacode_dagster.measuring.correctness.checks import right_by_their_tests
from formulacode_dagster.measuring.correctness.module_shape import ModuleShape, TopStatement
from formulacode_dagster.measuring.correctness.patch_lines import PatchLines
from formulacode_dagster.measuring.correctness.runs import EndedTest, TestRun
from formulacode_dagster.measuring.correctness.summary import report_of_tests, summary_of_tests
from formulacode_dagster.measuring.correctness.verdict import (
    are_weak,
    compared,
    coverage,
    fate_of,
    may_reach,
    reaching,
)
from formulacode_dagster.models.correctness import Correctness, Fate, ReachingTest, RunOutcome
from formulacode_dagster.models.measurement import Returned
from tests.records import make_measurement
from tests.support.correctness import correctness_row, reaching_test

PYTHON = PatchLines({}, {}, (), (), frozenset())


@pytest.mark.parametrize(
    ("base", "oracle", "fate"),
    [
        ("...", "...", Fate.PASS_TO_PASS),
        ("FFF", "...", Fate.FAIL_TO_PASS),
        ("???", "...", Fate.FAIL_TO_PASS),
        ("...", "FFF", Fate.BROKEN),
        ("...", "FTC", Fate.BROKEN),
        ("...", "TTT", Fate.BROKEN),
        ("...", "sss", Fate.BROKEN),
        ("...", "???", Fate.BROKEN),
        ("FFF", "FFF", Fate.NEVER_PASSES),
        ("sss", "sss", Fate.NEVER_PASSES),
        # a single failure, on either side, is no one's fault
        ("...", "..F", Fate.FLAKY),
        ("...", "FF.", Fate.FLAKY),
        (".F.", "FFF", Fate.FLAKY),
        (".F.", "...", Fate.FLAKY),
        ("FFF", "..F", Fate.FLAKY),
        # nor is what there was no time for, in whichever run
        ("---", "...", Fate.NOT_BEGUN),
        ("F-F", "...", Fate.NOT_BEGUN),
        ("...", "---", Fate.NOT_BEGUN),
        ("...", "FF-", Fate.NOT_BEGUN),
        ("-..", "...", Fate.NOT_BEGUN),
        ("-.F", "FFF", Fate.NOT_BEGUN),
    ],
)
def test_blame_takes_failing_every_time_and_nowhere_else(base: str, oracle: str, fate: Fate) -> None:
    assert fate_of(reaching_test(base, oracle)) is fate


def ended(name: str, *lines: int, path: str = "a.py", entered: bool = True) -> EndedTest:
    files = frozenset({path} if entered else ())
    return EndedTest(name=name, outcome=RunOutcome.PASSED, lines={path: frozenset(lines)}, entered=files)


def run(*tests: EndedTest, executable: tuple[int, ...] = (), imported: tuple[int, ...] = ()) -> TestRun:
    return TestRun(
        tests={test.name: test for test in tests},
        executable={"a.py": frozenset(executable)},
        imported={"a.py": frozenset(imported)},
    )


def test_a_test_reaches_the_change_on_either_side() -> None:
    base = run(ended("removed", 3), ended("added"), ended("none"), executable=(3,))
    oracle = run(ended("removed"), ended("added", 5), ended("new", 5), executable=(5,))
    assert reaching(PYTHON, base, oracle) == ("added", "new", "removed")


def test_code_executed_by_imports_is_reached_by_any_test_of_the_file() -> None:
    oracle = run(ended("enters"), ended("other", entered=False), executable=(1,), imported=(1,))
    assert reaching(PYTHON, run(), oracle) == ("enters",)
    more = run(ended("enters"), ended("executes", 9), executable=(1, 9), imported=(1,))
    assert reaching(PYTHON, run(), more) == ("executes",)
    # at the base, where only the other side has changed lines
    assert reaching(PYTHON, run(ended("enters")), run(ended("cached", entered=False), imported=(1,))) == ("enters",)


def test_compiled_code_is_reached_by_every_test() -> None:
    compiled = PatchLines({}, {}, ("src/a.c",), (), frozenset())
    assert reaching(compiled, run(ended("one")), run(ended("two"))) == ("one", "two")


def test_lines_count_once_whoever_executes_them() -> None:
    base = run(ended("one", 3), ended("two", 3, 4), executable=(3, 4, 5))
    assert coverage(base, run(executable=(8, 9), imported=(9,))) == (5, 3)


@pytest.mark.parametrize(
    ("tests", "changed", "covered", "weak"),
    [
        ([reaching_test("...", "...")], 4, 2, False),
        ([reaching_test("FFF", "...")], 4, 4, False),
        ([reaching_test("...", "...")], 4, 1, True),
        ([reaching_test("..F", "..."), reaching_test("FFF", "FFF")], 4, 4, True),
        ([], 0, 0, True),
    ],
)
def test_weak_tests_let_a_wrong_change_through(
    tests: list[ReachingTest], changed: int, covered: int, weak: bool
) -> None:
    assert are_weak(tests, (), changed=changed, covered=covered, untraceable=()) is weak


@pytest.mark.parametrize(("changed", "covered"), [(0, 0), (4, 4)])
def test_tests_without_execution_evidence_are_not_called_strong(changed: int, covered: int) -> None:
    row = correctness_row(
        reaching_test("...", "..."), changed=changed, covered=covered, untraceable=("src/a.c", "pkg/b.py:f")
    )
    assert row.weak_tests
    assert right_by_their_tests([MEASURED], [row]).figures == {"tested": 1, "weak": 1}
    strong = right_by_their_tests([MEASURED], [row.model_copy(update={"weak_tests": False})])
    assert "says weak_tests=False" in strong.offenders[0]
    assert summary_of_tests(row).endswith("lines executed, what executes src/a.c, pkg/b.py:f is unknown, weak")


def test_a_test_that_a_run_lacks_is_missing_there() -> None:
    failed = EndedTest(name="t", outcome=RunOutcome.FAILED, seconds=2.0, message="assert 1 == 2")
    (test,) = compared(["t"], [run(), run(failed)], [run(ended("t")), run()])
    assert test.base == (RunOutcome.MISSING, RunOutcome.FAILED)
    assert test.oracle == (RunOutcome.PASSED, RunOutcome.MISSING)
    assert (test.seconds, test.message) == (2.0, "assert 1 == 2")


def passing(*names: str, no_time: bool = False) -> TestRun:
    """A run of tests that passed, and perhaps of others after them for which there was no time."""
    return run(*map(ended, names)).model_copy(update={"no_time": no_time})


def fates(base: Sequence[TestRun], oracle: Sequence[TestRun]) -> dict[str, Fate]:
    names = sorted({name for each in (*base, *oracle) for name in each.tests})
    return {test.name: fate_of(test) for test in compared(names, base, oracle)}


def test_runs_that_are_cut_at_different_tests_say_nothing_of_those_between() -> None:
    longer = [passing("a", "b", "c", "d"), passing("a", "b", "c", no_time=True), passing("a", "b", "c", no_time=True)]
    shorter = [passing("a", "b", no_time=True), passing("a", no_time=True), passing("a", "b", no_time=True)]
    left_out = dict.fromkeys("bcd", Fate.NOT_BEGUN)
    # the base's runs come further, which breaks nothing, or those of a patch by which tests are faster: none is mended
    assert fates(longer, shorter) == {"a": Fate.PASS_TO_PASS, **left_out}
    assert fates(shorter, longer) == {"a": Fate.PASS_TO_PASS, **left_out}


def test_what_was_looked_for_in_vain_is_missing_though_time_was_up_later() -> None:
    names = ("t.py::test", "tests/deep/test_a.py::test", "t.python::test")
    cut = passing("first", no_time=True).model_copy(update={"uncollected": {"t.py": "no pkg.new", "tests/deep": "no"}})
    told = fates([cut] * 3, [passing("first", *names)] * 3)
    assert [told[name] for name in names] == [Fate.FAIL_TO_PASS, Fate.FAIL_TO_PASS, Fate.NOT_BEGUN]
    whole = passing("first")
    assert fates([whole] * 3, [passing("first", "new")] * 3)["new"] is Fate.FAIL_TO_PASS


def test_what_there_was_no_time_for_is_told_and_no_reason_to_reject() -> None:
    left_out = reaching_test("...", "---", "t.py::late"), reaching_test("F--", "...", "t.py::new")
    row = correctness_row(reaching_test("...", "..."), *left_out, no_time=True)
    assert (row.not_begun, row.broken, row.fail_to_pass) == (("t.py::late", "t.py::new"), (), ())
    assert right_by_their_tests([MEASURED], [row]).passed
    told = "0 are flaky, 2 are left out as a run had no time for them, time was up before the last was run once"
    assert told in summary_of_tests(row)
    assert "t.py::late: not_begun (passed passed passed | not_begun not_begun not_begun)" in report_of_tests(row)
    # tests that never passed cover nothing
    assert correctness_row(*left_out).weak_tests
    forged = row.model_copy(update={"not_begun": (), "fail_to_pass": ("t.py::new",)})
    assert not right_by_their_tests([MEASURED], [forged]).passed


def test_rows_stored_before_tests_could_be_skipped_are_judged_unchanged() -> None:
    stored = correctness_row(reaching_test("...", "..."), no_time=True).model_dump(mode="json")
    del stored["not_begun"]
    assert right_by_their_tests([MEASURED], [Correctness.model_validate(stored)]).passed


GOOD = correctness_row(reaching_test("...", "..."))
MEASURED = make_measurement({"bench.time_x": 2.0}, repository_id=GOOD.repository_id, number=GOOD.number)


def test_a_month_in_which_all_passes_as_before_is_right() -> None:
    tested = correctness_row(reaching_test("...", "..."), reaching_test("...", "..F", "t.py::flaky"))
    judged = right_by_their_tests([MEASURED], [tested])
    assert judged.passed
    assert judged.figures == {"tested": 1, "weak": 0}
    assert right_by_their_tests([], []).passed


@pytest.mark.parametrize(
    ("tested", "said"),
    [
        ([], "its tests were never run"),
        ([correctness_row(reaching_test("...", "FFF"))], "the author's patch breaks t.py::test"),
        (
            [correctness_row(reaching_test("...", "FFF"), broken=(), pass_to_pass=("t.py::test",))],
            "other tests are pass_to_pass",
        ),
        ([correctness_row(reaching_test("..", ".."))], "not run 3 times a side"),
        ([GOOD.model_copy(update={"weak_tests": True})], "says weak_tests=True"),
    ],
)
def test_what_is_not_shown_to_be_right_fires(tested: list[Correctness], said: str) -> None:
    judged = right_by_their_tests([MEASURED], tested)
    assert not judged.passed
    assert said in judged.offenders[0] or said in judged.offenders[-1]


def test_a_task_whose_benchmark_returns_something_else_is_not_right() -> None:
    other = MEASURED.model_copy(update={"returned": {"bench.time_x": Returned.DIFFERENT}})
    judged = right_by_their_tests([other], [GOOD])
    assert not judged.passed
    assert judged.offenders[0].endswith("bench.time_x returns something else with the author's patch")


def test_the_ledger_and_the_log_say_what_broke_and_how() -> None:
    tests = [reaching_test("...", "FFF", f"t.py::test_{n}") for n in range(5)]
    assert (
        summary_of_tests(correctness_row(*tests))
        == "the author's patch breaks t.py::test_0, t.py::test_1, t.py::test_2 and 2 others"
    )
    good = correctness_row(reaching_test("...", "..."), reaching_test("FFF", "...", "t.py::new"), covered=1)
    assert (
        summary_of_tests(good) == "1 tests pass as before, 1 begin to, 0 are flaky, 1 of 4 changed lines executed, weak"
    )
    assert "t.py::new: fail_to_pass (failed failed failed | passed passed passed)" in report_of_tests(good)
    assert summary_of_tests(correctness_row(problem="no pytest\nat all")) == "no test could be run: no pytest"


def test_the_base_runs_what_enters_the_change_or_is_unknown_with_the_patch() -> None:
    tests = {
        "a.py::enters": EndedTest(name="a.py::enters", outcome=RunOutcome.FAILED, entered=frozenset({"core.py"})),
        "a.py::apart": EndedTest(name="a.py::apart", outcome=RunOutcome.PASSED),
        "a.py::ends": EndedTest(name="a.py::ends", outcome=RunOutcome.CRASH),
    }
    run = TestRun(tests=tests)
    shape = ModuleShape((), frozenset({7}))
    python, shapes = dataclasses.replace(PYTHON, base={"core.py": frozenset({7})}), ({"core.py": shape},) * 2
    assert may_reach(python, run, shapes) == {"a.py::enters", "a.py::ends"}
    # all of them
    assert may_reach(python, run.model_copy(update={"uncollected": {"plugins": "ImportError"}}), shapes) == frozenset()
    assert may_reach(python, run.model_copy(update={"no_time": True}), shapes) == frozenset()
    assert may_reach(PatchLines({}, {}, ("core.c",), (), frozenset()), run, shapes) == frozenset()
    assert may_reach(dataclasses.replace(python, deletes=True), run, shapes) == frozenset()
    # what imports do, and what they call
    flag = ModuleShape((TopStatement("LIMIT = 1", frozenset({("", "LIMIT")}), True),), frozenset())
    assert may_reach(python, run, ({"core.py": flag}, shapes[1])) == may_reach(python, run, ({}, {})) == frozenset()
    calling = [run.model_copy(update={"imported": {"core.py": frozenset({line})}}) for line in (6, 7)]
    assert [len(may_reach(python, each, shapes)) for each in calling] == [2, 0]
