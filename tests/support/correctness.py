"""Tests of a repository that ended in this or that way, run by run."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from formulacode_dagster.measuring.correctness.verdict import are_weak, names_of
from formulacode_dagster.models.correctness import Correctness, Fate, Mutant, ReachingTest, RunOutcome
from formulacode_dagster.operating.store.artifacts import PullRequestKey
from formulacode_dagster.operating.store.tables import CORRECTNESS_HISTORY

SIGNS = {
    ".": RunOutcome.PASSED,
    "F": RunOutcome.FAILED,
    "s": RunOutcome.SKIPPED,
    "T": RunOutcome.TIMEOUT,
    "C": RunOutcome.CRASH,
    "?": RunOutcome.MISSING,
    "-": RunOutcome.NOT_BEGUN,
}


def reaching_test(base: str, oracle: str, name: str = "t.py::test") -> ReachingTest:
    outcomes = [tuple(SIGNS[sign] for sign in runs) for runs in (base, oracle)]
    return ReachingTest(name=name, base=outcomes[0], oracle=outcomes[1], seconds=0.1)


def correctness_row(
    *tests: ReachingTest,
    changed: int = 4,
    covered: int = 4,
    mutants: Sequence[Mutant] = (),
    untraceable: Sequence[str] = (),
    **changes: object,
) -> Correctness:
    names = {fate.value: names_of(tests, fate) for fate in Fate if fate is not Fate.NEVER_PASSES}
    fields: dict[str, object] = {
        "month": "2026-02",
        "repository_id": 7,
        "number": 12,
        "image_digest": "sha256:1",
        "pytest": "9.0.2",
        "hash_seeds": (1, 2, 3),
        "executed": 9,
        "left_out": 0,
        "no_time": False,
        "tests": tests,
        "changed_lines": changed,
        "covered_lines": covered,
        "untraceable": untraceable,
        "mutants": mutants,
        "weak_tests": are_weak(tests, mutants, changed=changed, covered=covered, untraceable=untraceable),
        "seconds": 1.0,
        **names,
        **changes,
    }
    return Correctness.model_validate(fields)


def correctness_of(connection: Connection, month: str, key: PullRequestKey) -> list[tuple[int, Correctness]]:
    """All stored test results of a task, oldest first, with the number of the measurement they belong to."""
    rows = CORRECTNESS_HISTORY.c
    of_task = (rows.month == month, rows.repository_id == key[0], rows.number == key[1])
    statement = select(rows.measurement, rows.document).where(*of_task).order_by(rows.attempt)
    return [(number, Correctness.model_validate(document)) for number, document in connection.execute(statement)]
