"""The verdict on a month of `problem_statements`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import MergedPullRequest

from .second_look import look_again


def nothing_leaks(statements: Iterable[tuple[ProblemStatement, MergedPullRequest, bytes]]) -> CheckFinding:
    """Pass if no variant of a statement reveals anything of its solution to a second check.

    *statements* come with the facts and the patch of their pull request, taken one at a time, so a month's patches need
    never be in memory together.
    """
    count = leaks = 0
    offenders: list[str] = []
    for statement, facts, patch in statements:
        count += 1
        if told := look_again(statement, facts, patch):
            leaks += len(told)
            offenders.append(facts.item)
    summary = f"none of {count} statements reveals anything of its solution"
    if offenders:
        summary = f"{len(offenders)} of {count} statements reveal their solutions, in {leaks} places"
    figures = {"statements": count, "leaking": len(offenders), "leaks": leaks}
    return CheckFinding.by_offenders(summary, offenders, figures)
