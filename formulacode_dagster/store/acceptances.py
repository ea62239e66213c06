"""What people accepted: lines are added and never changed."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from formulacode_dagster.models.acceptance import Acceptance

from .tables import ACCEPTANCES


def add_acceptance(connection: Connection, acceptance: Acceptance) -> None:
    """Append *acceptance*."""
    connection.execute(insert(ACCEPTANCES), {**acceptance.model_dump(), "stage": acceptance.stage.value})


def acceptances(connection: Connection, month: str) -> list[Acceptance]:
    """Every acceptance of *month*, the oldest first."""
    statement = select(ACCEPTANCES).where(ACCEPTANCES.c.month == month).order_by(ACCEPTANCES.c.accepted_at)
    return [Acceptance.model_validate(dict(row)) for row in connection.execute(statement).mappings()]
