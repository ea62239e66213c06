"""Costs of months, append-only. Requests to GitHub are in `usage`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Numeric, cast, func, select

from formulacode_dagster.models.items import Cost, Stage

from .bulk import insert_new
from .tables import SPENDING


@dataclass(frozen=True)
class Spent:
    """Cost of an item, or a call, of one run."""

    month: str
    stage: Stage
    run_id: str
    cost: Cost
    item: str = ""


def add_spending(connection: Connection, lines: Sequence[Spent]) -> None:
    """Append *lines*; those that cost nothing are left out."""
    rows = [
        {
            "month": line.month,
            "stage": line.stage.value,
            "item": line.item,
            "run_id": line.run_id,
            "spent_at": datetime.now(tz=UTC),
            "cost": line.cost.model_dump(mode="json", exclude_defaults=True),
        }
        for line in lines
        if line.cost != Cost()
    ]
    insert_new(connection, SPENDING, rows)


def book_call(connection: Connection, call: Spent) -> Cost:
    """Append *call*; returns the cost of its month including it, over all runs."""
    add_spending(connection, [call])
    return Cost.total(spending_of(connection, call.month).values())


def spending_of(connection: Connection, month: str) -> dict[Stage, Cost]:
    """Return the cost of each stage of *month*, over all its runs and attempts."""
    columns = SPENDING.c
    sums = [
        func.coalesce(func.sum(cast(func.jsonb_extract_path_text(columns.cost, name), Numeric)), 0)
        for name in Cost.model_fields
    ]
    statement = select(columns.stage, *sums).where(columns.month == month).group_by(columns.stage)
    return {
        Stage(stage): Cost.model_validate(dict(zip(Cost.model_fields, map(float, rows), strict=True)))
        for stage, *rows in connection.execute(statement)
    }
