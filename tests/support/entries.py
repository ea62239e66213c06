"""Entries of a month's ledger, written in few words."""

from __future__ import annotations

from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database

MONTH = "2026-02"


def enter(stage: Stage, item: str, said: str = "done", month: str = MONTH, **cost: float) -> LedgerEntry:
    """An entry; *said* is `done`, or `rejected title` and the like."""
    state, _, reason = said.partition(" ")
    return LedgerEntry(
        stage=stage, month=month, item=item, state=ItemState(state), reason=reason, cost=Cost.model_validate(cost)
    )


def states_of(database: Database, stage: Stage, month: str = MONTH) -> dict[str, ItemState]:
    """How each item stands at *stage*."""
    with database.transaction() as connection:
        return {entry.item: entry.state for entry in ledger.entries_of(connection, month, stage)}
