"""Verdicts of asset checks, kept for later runs to read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from formulacode_dagster.models.check import GateVerdict
from formulacode_dagster.models.items import Stage

from .bulk import upsert
from .tables import GATES


def record_verdict(connection: Connection, verdict: GateVerdict, run_id: str) -> None:
    """Keep *verdict*, replacing the one before."""
    row = {
        **verdict.model_dump(mode="json", exclude={"check"}),
        "check_name": verdict.check,
        "run_id": run_id,
        "judged_at": datetime.now(tz=UTC),
    }
    upsert(connection, GATES, [row])


def verdicts(connection: Connection, month: str, stage: Stage | None = None) -> list[GateVerdict]:
    """The newest verdict of every check of *month*, or of one stage of it."""
    statement = select(GATES).where(GATES.c.month == month)
    if stage is not None:
        statement = statement.where(GATES.c.stage == stage.value)
    rows = connection.execute(statement.order_by(GATES.c.stage, GATES.c.check_name)).mappings()
    return [_from_row(dict(row)) for row in rows]


def _from_row(row: dict[str, Any]) -> GateVerdict:
    fields = {name: row[name] for name in GateVerdict.model_fields if name != "check"}
    return GateVerdict.model_validate({**fields, "check": row["check_name"]})
