"""How far surveys have come that ran out of time: by suite, the benchmarks that do not execute a change."""

from __future__ import annotations

from sqlalchemy import Connection, select

from .artifacts import PullRequestKey
from .bulk import upsert
from .tables import SURVEYS


def read_surveys(connection: Connection, month: str, key: PullRequestKey, inputs: str) -> dict[str, frozenset[str]]:
    """Names of the benchmarks ruled out by suite, for the task with this (repository id, number) and *inputs*."""
    columns = SURVEYS.c
    of_task = (columns.month == month, columns.repository_id == key[0], columns.number == key[1])
    statement = select(columns.suite, columns.ruled_out).where(*of_task, columns.inputs == inputs)
    return {suite: frozenset(names) for suite, names in connection.execute(statement)}


def save_survey(
    connection: Connection, month: str, key: PullRequestKey, inputs: str, *, suite: str, ruled_out: frozenset[str]
) -> None:
    """Keep what is *ruled_out* of *suite*, in place of what was, with other *inputs* too."""
    row = {"month": month, "repository_id": key[0], "number": key[1], "suite": suite}
    upsert(connection, SURVEYS, [{**row, "inputs": inputs, "ruled_out": sorted(ruled_out)}])
