"""Verdicts of asset checks, kept for later runs to read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.items import Stage

from .bulk import upsert
from .tables import CHECK_VERDICTS


def record_verdict(connection: Connection, verdict: CheckVerdict, run_id: str) -> None:
    """Keep *verdict*, replacing the one before."""
    row = {
        **verdict.model_dump(mode="json", exclude={"check"}),
        "check_name": verdict.check,
        "run_id": run_id,
        "judged_at": datetime.now(tz=UTC),
    }
    upsert(connection, CHECK_VERDICTS, [row])


def remove_verdicts(connection: Connection, stage: Stage, month: str) -> None:
    """Remove the verdicts on *stage* of *month*."""
    columns = CHECK_VERDICTS.c
    connection.execute(delete(CHECK_VERDICTS).where(columns.stage == stage.value, columns.month == month))


def verdicts(connection: Connection, month: str) -> list[CheckVerdict]:
    """The newest verdict of every check of *month*."""
    statement = select(CHECK_VERDICTS).where(CHECK_VERDICTS.c.month == month)
    rows = connection.execute(statement.order_by(CHECK_VERDICTS.c.stage, CHECK_VERDICTS.c.check_name)).mappings()
    return [_from_row(dict(row)) for row in rows]


def _from_row(row: dict[str, Any]) -> CheckVerdict:
    fields = {name: row[name] for name in CheckVerdict.model_fields if name != "check"}
    return CheckVerdict.model_validate({**fields, "check": row["check_name"]})
