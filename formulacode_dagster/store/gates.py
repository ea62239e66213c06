"""Verdicts of asset checks, kept for later runs to read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from formulacode_dagster.models.gate import GateVerdict
from formulacode_dagster.models.items import Stage

from .tables import GATES


def record_verdict(connection: Connection, verdict: GateVerdict, run_id: str) -> None:
    """Keep *verdict*, replacing the one before."""
    row = {
        **verdict.model_dump(mode="json", exclude={"check"}),
        "check_name": verdict.check,
        "run_id": run_id,
        "judged_at": func.now(),
    }
    statement = insert(GATES).values(row)
    keys = [column.name for column in GATES.primary_key]
    changes = {name: statement.excluded[name] for name in row if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changes))


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
