"""Costs of months, append-only. Requests to GitHub are in `usage`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Numeric, cast, func, select

from formulacode_dagster.models.items import Cost, Stage

from .bulk import insert_new
from .database import Database
from .tables import SPENDING

READ_SECONDS = 10.0
"""A sum over all lines of a month at every call would take longer with each call."""


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


class MonthTotal:
    """The cost of a month over all runs, for many calls of one process: read at times, its own calls added in between.

    Costs of other processes become known READ_SECONDS later at most. Safe between threads.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._cost = Cost()
        self._read_at: float | None = None

    def book(self, database: Database, call: Spent) -> Cost:
        """Append *call*; returns the cost of its month including it."""
        with self._lock:
            now = self._clock()
            is_due = self._read_at is None or now - self._read_at >= READ_SECONDS
            with database.transaction() as connection:
                add_spending(connection, [call])
                total = Cost.total(spending_of(connection, call.month).values()) if is_due else self._cost + call.cost
            self._cost = total
            if is_due:
                self._read_at = now
            return total
