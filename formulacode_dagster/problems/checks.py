"""The verdict on a month of `problem_statements`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.problem import ProblemStatement

from .solution import leaks


def nothing_leaks(
    statements: Iterable[tuple[ProblemStatement, bytes]],
    names: Mapping[tuple[int, int], str] | None = None,
) -> Judgement:
    """No variant of a statement holds a distinctive line that its own patch adds.

    *statements* are pairs of statement and patch, taken one at a time, so a month's patches need never be in memory
    together. *names* gives `owner/repo#n` by (repository id, number), for people to read.
    """
    count = lines = 0
    offenders: list[str] = []
    for statement, patch in statements:
        count += 1
        variants = (statement.statement_minimal, statement.statement_issue or "", statement.final_md)
        if leaked := {line for text in variants for line in leaks(text, patch, new_only=True)}:
            lines += len(leaked)
            key = (statement.repository_id, statement.number)
            offenders.append((names or {}).get(key, f"{key[0]}#{key[1]}"))
    summary = f"none of {count} statements holds a line of its solution"
    if offenders:
        summary = f"{len(offenders)} of {count} statements hold {lines} lines of their solutions"
    figures = {"statements": count, "leaking": len(offenders), "lines": lines}
    return Judgement.by_offenders(summary, offenders, figures)
