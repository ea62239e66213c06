"""What the tests of tasks said: each run of them is kept for good, the newest of a task is what people read."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from formulacode_dagster.models.correctness import Correctness

from .artifacts import CORRECTNESS, PullRequestKey
from .bulk import insert_new
from .tables import CORRECTNESS_EVER

_EVER = CORRECTNESS_EVER.c


def save_correctness(connection: Connection, row: Correctness, *, measurement: int) -> None:
    """Add *row*, which followed the *measurement* of this number, to all there ever were, as the newest of its task."""
    key = {"month": row.month, "repository_id": row.repository_id, "number": row.number}
    of_task = (_EVER[name] == value for name, value in key.items())
    last = connection.execute(select(func.coalesce(func.max(_EVER.attempt), 0)).where(*of_task)).scalar_one()
    added = {**key, "attempt": int(last) + 1, "measurement": measurement, "document": row.model_dump(mode="json")}
    insert_new(connection, CORRECTNESS_EVER, [added])
    CORRECTNESS.save(connection, [row])


def correctness_of(connection: Connection, month: str, key: PullRequestKey) -> list[tuple[int, Correctness]]:
    """All that tests of the task with this (repository id, number) ever said, oldest first; with the measurements."""
    of_task = (_EVER.month == month, _EVER.repository_id == key[0], _EVER.number == key[1])
    statement = select(_EVER.measurement, _EVER.document).where(*of_task).order_by(_EVER.attempt)
    return [(number, Correctness.model_validate(document)) for number, document in connection.execute(statement)]
