from __future__ import annotations

from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import Spent, add_spending, book_call, spending_of

MONTH = "2026-02"


def test_what_was_spent_is_added_up_by_stage_and_never_replaced(database: Database) -> None:
    call = Cost(model_calls=1, tokens_in=20, tokens_out=3, dollars=0.25, seconds=1.5)
    with database.transaction() as connection:
        lines = [Spent(MONTH, Stage.CLASSIFICATIONS, "run", call, "a/b#1")] * 2
        lines += [
            Spent(MONTH, Stage.IMAGES, "run", Cost(bytes=7)),
            Spent("2026-01", Stage.IMAGES, "run", Cost(bytes=9)),
        ]
        add_spending(connection, lines)
        add_spending(connection, [Spent(MONTH, Stage.CLASSIFICATIONS, "again", call, "a/b#1")])
        add_spending(connection, [Spent(MONTH, Stage.MEASUREMENTS, "run", Cost())])
        # an item's newest attempt replaces what the ledger had of it, not what it has cost
        entry = LedgerEntry(stage=Stage.CLASSIFICATIONS, month=MONTH, item="a/b#1", state=ItemState.DONE)
        ledger.record(connection, [entry])
        assert spending_of(connection, MONTH) == {
            Stage.CLASSIFICATIONS: Cost(model_calls=3, tokens_in=60, tokens_out=9, dollars=0.75, seconds=4.5),
            Stage.IMAGES: Cost(bytes=7),
        }


def test_what_a_call_books_tells_what_all_runs_have_spent_of_the_month(database: Database) -> None:
    call = Cost(model_calls=1, dollars=0.25)
    with database.transaction() as connection:
        assert book_call(connection, Spent(MONTH, Stage.MEASUREMENTS, "run", call)) == call
        assert book_call(connection, Spent(MONTH, Stage.CLASSIFICATIONS, "helper", call)) == call + call
