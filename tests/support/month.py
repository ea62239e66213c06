"""Items of a month as the ledger has them."""

from __future__ import annotations

from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database

MONTH = "2026-02"


def enter(
    database: Database,
    stage: Stage,
    item: str,
    state: ItemState = ItemState.DONE,
    *,
    month: str = MONTH,
    reason: str = "",
) -> None:
    """Enter that *item* ended *stage* in *state*."""
    with database.transaction() as connection:
        ledger.record(connection, [LedgerEntry(stage=stage, month=month, item=item, state=state, reason=reason)])
