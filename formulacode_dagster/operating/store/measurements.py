"""Measurements, test results, gradings, replays: all stored for ever, the newest per task shown; unfinished surveys."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Table, and_, func, select

from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.grading import TaskGrading
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.models.release import Replay

from .artifacts import CORRECTNESS, GRADINGS, REPLAYS, PullRequestKey
from .bulk import insert_new, upsert
from .tables import CORRECTNESS_HISTORY, MEASUREMENTS_HISTORY, SURVEYS

_EVER, _TESTED, _REPLAYS = MEASUREMENTS_HISTORY.c, CORRECTNESS_HISTORY.c, REPLAYS.table.c


def add_measurement(connection: Connection, row: Measurement) -> Measurement:
    """Append *row* to the history and return it with its number. The visible row of its task does not change."""
    attempt = last_attempt(connection, row.month, (row.repository_id, row.number)) + 1
    numbered = row.model_copy(update={"attempt": attempt})
    key = {"month": row.month, "repository_id": row.repository_id, "number": row.number, "attempt": attempt}
    insert_new(connection, MEASUREMENTS_HISTORY, [{**key, "document": numbered.model_dump(mode="json")}])
    return numbered


def last_attempt(connection: Connection, month: str, key: PullRequestKey) -> int:
    """Return the number of the newest measurement of the task with this (repository id, number); 0 if there is none."""
    statement = select(func.coalesce(func.max(_EVER.attempt), 0)).where(_of_task(MEASUREMENTS_HISTORY, month, key))
    return int(connection.execute(statement).scalar_one())


def newest_measurement(connection: Connection, month: str, key: PullRequestKey) -> Measurement | None:
    """The newest measurement of the task with this (repository id, number), however it ended; None without any."""
    of_task = _of_task(MEASUREMENTS_HISTORY, month, key)
    document = connection.execute(select(_EVER.document).where(of_task).order_by(_EVER.attempt.desc()).limit(1))
    newest = document.scalar_one_or_none()
    return Measurement.model_validate(newest) if newest and "rule" in newest else None


def measurements_of(connection: Connection, month: str, key: PullRequestKey) -> list[Measurement]:
    """All measurements of the task with this (repository id, number) by the present rules, oldest first."""
    statement = select(_EVER.document).where(_of_task(MEASUREMENTS_HISTORY, month, key)).order_by(_EVER.attempt)
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
    """Store the *ruled_out* benchmarks of *suite*, replacing earlier ones, also those with other *inputs*."""
    row = {"month": month, "repository_id": key[0], "number": key[1], "suite": suite}
    upsert(connection, SURVEYS, [{**row, "inputs": inputs, "ruled_out": sorted(ruled_out)}])


def add_replay(connection: Connection, replay: Replay) -> None:
    """Add *replay* to those of its task, numbered on."""
    of_task = (_REPLAYS.month == replay.month, _REPLAYS.task_id == replay.task_id)
    last = connection.execute(select(func.coalesce(func.max(_REPLAYS.attempt), 0)).where(*of_task)).scalar_one()
    REPLAYS.add(connection, [replay.model_copy(update={"attempt": int(last) + 1})])


def replays_of(connection: Connection, month: str) -> dict[str, list[Replay]]:
    """Every replay of the tasks of *month*, oldest first, by task."""
    by_task: dict[str, list[Replay]] = {}
    for replay in REPLAYS.iterate(connection, month):
        by_task.setdefault(replay.task_id, []).append(replay)
    return by_task


def add_gradings(connection: Connection, rows: Sequence[TaskGrading]) -> None:
    """Append *rows*, each numbered after the earlier gradings of its task."""
    for row in rows:
        of_task = _of_task(GRADINGS.table, row.month, (row.repository_id, row.number))
        statement = select(func.coalesce(func.max(GRADINGS.table.c.attempt), 0)).where(of_task)
        last = connection.execute(statement).scalar_one()
        GRADINGS.add(connection, [row.model_copy(update={"attempt": int(last) + 1})])


def newest_gradings(connection: Connection, month: str) -> dict[PullRequestKey, TaskGrading]:
    """Return the newest grading of each task of *month*, by (repository id, number)."""
    return {(row.repository_id, row.number): row for row in GRADINGS.iterate(connection, month)}


def _of_task(table: Table, month: str, key: PullRequestKey) -> ColumnElement[bool]:
    columns = table.c
    return and_(columns.month == month, columns.repository_id == key[0], columns.number == key[1])


def save_correctness(connection: Connection, row: Correctness, *, measurement: int) -> None:
    """Add *row*, which followed the *measurement* of this number, to all there ever were, as the newest of its task."""
    key = {"month": row.month, "repository_id": row.repository_id, "number": row.number}
    of_task = (_TESTED[name] == value for name, value in key.items())
    last = connection.execute(select(func.coalesce(func.max(_TESTED.attempt), 0)).where(*of_task)).scalar_one()
    added = {**key, "attempt": int(last) + 1, "measurement": measurement, "document": row.model_dump(mode="json")}
    insert_new(connection, CORRECTNESS_HISTORY, [added])
    CORRECTNESS.save(connection, [row])
