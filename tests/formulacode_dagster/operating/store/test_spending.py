from __future__ import annotations

import pytest
from sqlalchemy import Connection

from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger, spending
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import READ_SECONDS, MonthTotal, Spent, add_spending, spending_of

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


def test_the_total_of_a_month_is_read_at_times_and_own_calls_are_added_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def read(connection: Connection, month: str) -> dict[Stage, Cost]:
        reads.append(month)
        return spending_of(connection, month)

    monkeypatch.setattr(spending, "spending_of", read)
    clock = Clock()
    ours, others = MonthTotal(clock), MonthTotal(clock)
    call = Cost(model_calls=1, dollars=0.25)
    mine = Spent(MONTH, Stage.MEASUREMENTS, "run", call)
    assert [ours.book(database, mine).model_calls for _ in range(3)] == [1, 2, 3]
    assert reads == [MONTH]
    assert others.book(database, Spent(MONTH, Stage.CLASSIFICATIONS, "helper", call)).model_calls == 4
    assert ours.book(database, mine).model_calls == 4, "other processes are known later"
    clock.now += READ_SECONDS
    assert ours.book(database, mine) == Cost(model_calls=6, dollars=1.5)
    assert len(reads) == 3


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now
