"""Measurements: each is kept for good, the newest of a task is what people read; and surveys that ran out of time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Table, and_, func, select

from formulacode_dagster.models.measurement import Measurement

from .artifacts import MEASUREMENTS, PullRequestKey
from .bulk import insert_new, upsert
from .tables import MEASUREMENTS_EVER, SURVEYS

_EVER = MEASUREMENTS_EVER.c


def save_measurements(connection: Connection, rows: Sequence[Measurement]) -> None:
    """Add *rows* to all there ever were, numbered on, and make each the newest of its task."""
    for row in rows:
        attempt = last_attempt(connection, row.month, (row.repository_id, row.number)) + 1
        numbered = row.model_copy(update={"attempt": attempt})
        key = {"month": row.month, "repository_id": row.repository_id, "number": row.number, "attempt": attempt}
        insert_new(connection, MEASUREMENTS_EVER, [{**key, "document": numbered.model_dump(mode="json")}])
        MEASUREMENTS.save(connection, [numbered])


def last_attempt(connection: Connection, month: str, key: PullRequestKey) -> int:
    """Number of the newest measurement of the task with this (repository id, number); 0 when there is none."""
    statement = select(func.coalesce(func.max(_EVER.attempt), 0)).where(_of_task(MEASUREMENTS_EVER, month, key))
    return int(connection.execute(statement).scalar_one())


def measurements_of(connection: Connection, month: str, key: PullRequestKey) -> list[Measurement]:
    """All measurements of the task with this (repository id, number) by the present rules, oldest first."""
    statement = select(_EVER.document).where(_of_task(MEASUREMENTS_EVER, month, key)).order_by(_EVER.attempt)
    documents = connection.execute(statement).scalars()
    return [Measurement.model_validate(document) for document in documents if "rule" in document]


def read_surveys(connection: Connection, month: str, key: PullRequestKey, inputs: str) -> dict[str, frozenset[str]]:
    """Names of the benchmarks ruled out by suite, for the task with this (repository id, number) and *inputs*."""
    of_task = _of_task(SURVEYS, month, key)
    statement = select(SURVEYS.c.suite, SURVEYS.c.ruled_out).where(of_task, SURVEYS.c.inputs == inputs)
    return {suite: frozenset(names) for suite, names in connection.execute(statement)}


def save_survey(
    connection: Connection, month: str, key: PullRequestKey, inputs: str, *, suite: str, ruled_out: frozenset[str]
) -> None:
    """Keep what is *ruled_out* of *suite*, in place of what was, with other *inputs* too."""
    row = {"month": month, "repository_id": key[0], "number": key[1], "suite": suite}
    upsert(connection, SURVEYS, [{**row, "inputs": inputs, "ruled_out": sorted(ruled_out)}])


def _of_task(table: Table, month: str, key: PullRequestKey) -> ColumnElement[bool]:
    columns = table.c
    return and_(columns.month == month, columns.repository_id == key[0], columns.number == key[1])
