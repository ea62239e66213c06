"""Decisions of people about a month: accepted failures, withdrawn tasks, reviews. The tables are append-only."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select
from sqlalchemy.dialects import postgresql

from formulacode_dagster.models.agent_run import Review
from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.release import Withdrawal

from .artifacts import REVIEWS
from .tables import ACCEPTANCES, WITHDRAWALS


def add_acceptance(connection: Connection, acceptance: Acceptance) -> None:
    """Append *acceptance*."""
    connection.execute(insert(ACCEPTANCES), {**acceptance.model_dump(), "stage": acceptance.stage.value})


def acceptances(connection: Connection, month: str) -> list[Acceptance]:
    """Every acceptance of *month*, the oldest first."""
    statement = select(ACCEPTANCES).where(ACCEPTANCES.c.month == month).order_by(ACCEPTANCES.c.accepted_at)
    return [Acceptance.model_validate(dict(row)) for row in connection.execute(statement).mappings()]


def add_withdrawal(connection: Connection, withdrawal: Withdrawal) -> None:
    """Append *withdrawal*; the first withdrawal of a task stands."""
    connection.execute(postgresql.insert(WITHDRAWALS).on_conflict_do_nothing(), withdrawal.model_dump())


def withdrawals(connection: Connection, month: str) -> dict[str, Withdrawal]:
    """The withdrawals of *month*, by task id."""
    statement = select(WITHDRAWALS).where(WITHDRAWALS.c.month == month).order_by(WITHDRAWALS.c.task_id)
    rows = connection.execute(statement).mappings()
    return {row["task_id"]: Withdrawal.model_validate(dict(row)) for row in rows}


def add_review(connection: Connection, review: Review) -> None:
    """Append *review*."""
    REVIEWS.add(connection, [review])


def reviews_of(connection: Connection, month: str) -> dict[str, list[Review]]:
    """Return the reviews of the tasks of *month*, oldest first, by task."""
    by_task: dict[str, list[Review]] = {}
    for review in REVIEWS.iterate(connection, month):
        by_task.setdefault(review.task_id, []).append(review)
    return by_task
