"""Mistakes in the patch: which are tried, against which tests, and what that says."""

from __future__ import annotations

import pytest

from formulacode_dagster.measuring.correctness.mutants import BEGUN_WITHIN_SECONDS, MOST_MUTANTS, chosen, try_mutants
from formulacode_dagster.measuring.correctness.runs import EndedTest, TestRun, TestRunner
from formulacode_dagster.measuring.correctness.summary import report_of_tests, summary_of_tests
from formulacode_dagster.measuring.correctness.verdict import are_weak
from formulacode_dagster.models.correctness import Mutant, Mutation, MutationKind, ReachingTest, RunOutcome
from tests.records import make_spec
from tests.support.correctness import correctness_row, reaching_test

SPEC = make_spec(package_name="", benchmark_dir="benchmarks")
QUICK, SLOW, OTHER = "t.py::quick", "t.py::slow", "t.py::other"


def mutation(line: int, kind: MutationKind = MutationKind.RETURNED, column: int = 0) -> Mutation:
    return Mutation(line=line, column=column, kind=kind)


def holding(**seconds: float) -> list[ReachingTest]:
    return [
        reaching_test("...", "...", f"t.py::{name}").model_copy(update={"seconds": s}) for name, s in seconds.items()
    ]


def run_of(*mutations: Mutation, **lines: tuple[int, ...]) -> TestRun:
    tests = {
        f"t.py::{name}": EndedTest(name=name, outcome=RunOutcome.PASSED, lines={"a.py": frozenset(executed)})
        for name, executed in lines.items()
    }
    return TestRun(tests=tests, mutations={"a.py": mutations})


class Script:
    """Answers in turn whether a mutant is killed, and remembers what was asked."""

    def __init__(self, *answers: bool | None) -> None:
        self.answers, self.asked = list(answers), []

    def __call__(self, path, mutation, named, *, limit, seconds):
        self.asked.append((path, mutation.line, list(named), limit))
        return self.answers.pop(0)


def test_only_code_of_passing_tests_is_mutated_quickest_tests_first() -> None:
    run = run_of(mutation(1), mutation(5), mutation(9), quick=(5,), slow=(5,), flaky=(1,))
    script = Script(True)
    (mutant,) = try_mutants(script, run, holding(slow=3.0, quick=0.1))
    assert script.asked == [("a.py", 5, [QUICK, SLOW], 15.0)]
    assert (mutant.killed, mutant.tests, mutant.line) == (True, 2, 5)


def test_tests_that_take_long_are_left_out_but_for_one() -> None:
    run = run_of(mutation(5), quick=(5,), slow=(5,), other=(5,))
    script = Script(False)
    try_mutants(script, run, holding(slow=19.0, quick=2.0, other=30.0))
    assert script.asked[0][2] == [QUICK]
    script = Script(False)
    try_mutants(script, run, holding(other=30.0))
    assert script.asked[0][2] == [OTHER]


def test_it_ends_with_the_first_that_is_noticed_or_with_a_few() -> None:
    run = run_of(*(mutation(line) for line in range(1, 9)), quick=tuple(range(1, 9)))
    assert [mutant.killed for mutant in try_mutants(Script(False, True), run, holding(quick=0.1))] == [False, True]
    survived = try_mutants(Script(*[False] * MOST_MUTANTS), run, holding(quick=0.1))
    assert [mutant.killed for mutant in survived] == [False] * MOST_MUTANTS


def test_what_could_not_be_tried_is_no_evidence_and_time_ends_it() -> None:
    run = run_of(*(mutation(line) for line in range(1, 9)), quick=tuple(range(1, 9)))
    assert try_mutants(Script(None, None, None), run, holding(quick=0.1)) == ()
    clock = iter([0.0, 1.0, BEGUN_WITHIN_SECONDS + 1])
    assert len(try_mutants(Script(False), run, holding(quick=0.1), clock=lambda: next(clock))) == 1


def test_of_each_kind_one_comes_before_a_second_of_any() -> None:
    kinds = [MutationKind.RETURNED, MutationKind.RETURNED, MutationKind.COMPARED, MutationKind.DELETED]
    run = run_of(*(mutation(line, kind) for line, kind in enumerate(kinds, 1)), quick=(1, 2, 3, 4))
    assert [each.line for _, each in chosen(run, [QUICK])] == [1, 3, 4]


def mutant(killed: bool) -> Mutant:
    return Mutant(path="a.py", line=3, column=4, kind=MutationKind.COMPARED, tests=2, killed=killed)


@pytest.mark.parametrize(
    ("mutants", "weak"),
    [((), False), ((mutant(False),), True), ((mutant(False), mutant(True)), False)],
)
def test_tests_that_notice_no_mutant_are_weak(mutants: tuple[Mutant, ...], weak: bool) -> None:
    row = correctness_row(reaching_test("...", "..."), mutants=mutants)
    assert are_weak(row.tests, row.mutants, changed=4, covered=4, untraceable=()) is row.weak_tests is weak


def test_the_ledger_and_the_log_tell_of_them() -> None:
    row = correctness_row(reaching_test("...", "..."), mutants=(mutant(False), mutant(True)))
    assert summary_of_tests(row).endswith("1 of 2 mutants killed")
    assert "mutant compared at a.py:3:4: survived, 2 tests execute the line" in report_of_tests(row)


CODE = """\
def least(numbers):
    best = None
    for n in numbers:
        if best is None or n < best:
            best = n
    return best
"""
TESTS = """
import sys
from pkg.core import least


def test_that_looks():
    assert least([3, 1, 2]) == 1


def test_that_does_not():
    least([3, 1, 2])


def test_that_ends_the_process_if_wrong():
    if least([3, 1, 2]) != 1:
        import os
        os._exit(1)
"""
FLIPPED = Mutation(line=4, column=27, kind=MutationKind.COMPARED)


@pytest.mark.slow
def test_a_mistake_is_noticed_by_tests_that_look_and_no_file_is_changed(session, lay) -> None:
    repository = lay(
        session.folder / "repository", {"pkg/__init__.py": "", "pkg/core.py": CODE, "tests/test_core.py": TESTS}
    )
    runner = TestRunner(session, SPEC)
    told = runner.run(hash_seed=1, watched={"pkg/core.py": [4, 6]})
    assert FLIPPED in told.mutations["pkg/core.py"]

    def kills(name: str, where: Mutation = FLIPPED, path: str = "pkg/core.py") -> bool | None:
        return runner.kills(path, where, [f"tests/test_core.py::{name}"], hash_seed=1, limit=5, seconds=30)

    assert kills("test_that_looks") is True
    assert kills("test_that_ends_the_process_if_wrong") is True
    assert kills("test_that_does_not") is False
    assert kills("test_that_looks", path="pkg/other.py") is None, "nothing imports it"
    assert kills("test_that_looks", mutation(99)) is None, "there is no such place"
    assert (repository / "pkg/core.py").read_text() == CODE
