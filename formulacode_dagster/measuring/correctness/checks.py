"""The verdict on a month of tests, recomputed from the outcomes that are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.correctness import Correctness, Fate
from formulacode_dagster.models.measurement import Measurement

from .verdict import RUNS, are_weak, names_of


def right_by_their_tests(measured: Sequence[Measurement], tested: Sequence[Correctness]) -> CheckFinding:
    """Pass when each of *measured* was *tested*, the figures follow, no test is broken, and no result is another."""
    rows = {(row.repository_id, row.number): row for row in tested}
    offenders = []
    for row in measured:
        key = row.repository_id, row.number
        problems = [*_problems(rows[key])] if key in rows else ["its tests were never run"]
        problems += [f"{name} returns something else with the author's patch" for name in row.returning_other]
        offenders += [f"{key[0]}#{key[1]}: {problem}" for problem in problems]
    weak = sum(row.weak_tests for row in tested)
    summary = f"passing tests still pass after each of {len(measured)} changes; the tests of {weak} are weak"
    if offenders:
        summary = f"{len(offenders)} things speak against changes being right; first: {offenders[0]}"
    return CheckFinding.by_offenders(summary, offenders, {"tested": len(tested), "weak": weak})


def _problems(row: Correctness) -> Iterator[str]:
    if any(len(test.base) != RUNS or len(test.oracle) != RUNS for test in row.tests):
        yield f"a test was not run {RUNS} times a side"
        return
    for fate in (Fate.PASS_TO_PASS, Fate.FAIL_TO_PASS, Fate.FLAKY, Fate.BROKEN, Fate.NOT_BEGUN):
        if names_of(row.tests, fate) != getattr(row, fate.value):
            yield f"by its outcomes, other tests are {fate}"
    is_weak = are_weak(
        row.tests,
        row.mutants,
        changed=row.changed_lines,
        covered=row.covered_lines,
        untraceable=row.untraceable,
    )
    if row.weak_tests is not is_weak:
        yield f"says weak_tests={row.weak_tests}, its outcomes differ"
    if broken := names_of(row.tests, Fate.BROKEN):
        yield f"the author's patch breaks {', '.join(broken[:3])}"
