from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError

from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from tests.support.strategies import rows_of

MONTH = "2026-02"


def entry(item: str, stage: Stage = Stage.IMAGES, state: ItemState = ItemState.DONE, **fields: object) -> LedgerEntry:
    return LedgerEntry.model_validate({"stage": stage, "month": MONTH, "item": item, "state": state, **fields})


def record(database: Database, *entries: LedgerEntry) -> None:
    with database.transaction() as connection:
        ledger.record(connection, entries)


def names(entries: list[LedgerEntry]) -> list[str]:
    return [entry.item for entry in entries]


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_entry_comes_back_equal(database: Database, data: st.DataObject) -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    cost = data.draw(rows_of(Cost))
    written = data.draw(rows_of(LedgerEntry, month=MONTH, finished_at=moment, attempt=3, cost=cost))
    with database.engine.connect() as connection:
        ledger.record(connection, [written])
        assert ledger.entries_of(connection, MONTH) == [written]


def test_an_entry_without_a_time_is_stamped_when_it_is_written(database: Database) -> None:
    before = datetime.now(tz=UTC)
    record(database, entry("a/b#1"))
    with database.transaction() as connection:
        (found,) = ledger.entries_of(connection, MONTH)
    assert found.finished_at is not None
    assert before <= found.finished_at <= datetime.now(tz=UTC)


def test_an_item_ends_a_stage_in_exactly_one_state_the_last_one_said(database: Database) -> None:
    record(database, entry("a/b#1", state=ItemState.FAILED, reason="timeout", log_tail="…"))
    record(database, entry("a/b#1", state=ItemState.DONE, attempt=2))
    with database.transaction() as connection:
        (found,) = ledger.entries_of(connection, MONTH)
    assert (found.state, found.reason, found.log_tail, found.attempt) == (ItemState.DONE, "", "", 2)


def test_a_month_is_read_whole_or_by_stage_in_a_stable_order(database: Database) -> None:
    record(
        database,
        entry("c/d#1"),
        entry("a/b#2"),
        entry("a/b#1", Stage.CLASSIFICATIONS),
        entry("a/b#1", month="2026-01"),
    )
    with database.transaction() as connection:
        assert names(ledger.entries_of(connection, MONTH, Stage.IMAGES)) == ["a/b#2", "c/d#1"]
        assert names(ledger.entries_of(connection, MONTH)) == ["a/b#1", "a/b#2", "c/d#1"]
        assert ledger.entries_of(connection, "2025-12") == []


def test_items_are_listed_by_state(database: Database) -> None:
    record(
        database,
        entry("a/b#2"),
        entry("a/b#1"),
        entry("a/b#3", state=ItemState.REJECTED, reason="title"),
        entry("a/b#4", state=ItemState.FAILED),
        entry("a/b#5", Stage.MEASUREMENTS),
    )
    with database.transaction() as connection:
        assert ledger.items_in_state(connection, MONTH, Stage.IMAGES, ItemState.DONE) == ["a/b#1", "a/b#2"]
        assert ledger.items_in_state(connection, MONTH, Stage.IMAGES, ItemState.REJECTED) == ["a/b#3"]
        assert ledger.items_in_state(connection, "2026-01", Stage.IMAGES, ItemState.DONE) == []


def test_a_story_is_told_in_the_order_of_the_stages_month_after_month(database: Database) -> None:
    told = [
        entry("a/b#1", Stage.REPOSITORIES, month="2026-01"),
        entry("a/b#1", Stage.MONTHLY_REPORT, month="2026-01"),
        entry("a/b#1", Stage.PULL_REQUESTS),
        entry("a/b#1", Stage.CLASSIFICATIONS),
        entry("a/b#1", Stage.ENVIRONMENTS),
        entry("a/b#1", Stage.IMAGES),
    ]
    record(database, *reversed(told), entry("a/b#11"))
    with database.transaction() as connection:
        story = ledger.story(connection, "a/b#1")
    assert [(entry.month, entry.stage) for entry in story] == [(entry.month, entry.stage) for entry in told]


def test_work_is_counted_from_a_moment_on_and_skips_are_none(database: Database) -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    record(
        database,
        entry("a/b#1", finished_at=moment - timedelta(microseconds=1)),
        entry("a/b#2", finished_at=moment),
        entry("a/b#3", state=ItemState.REJECTED, month="2026-01", finished_at=moment),
        entry("a/b#4", state=ItemState.SKIPPED, finished_at=moment),
    )
    with database.transaction() as connection:
        assert ledger.finished_since(connection, moment) == 2
        assert ledger.finished_since(connection, moment + timedelta(seconds=1)) == 0


def test_forgetting_drops_only_what_is_named(database: Database) -> None:
    record(
        database, entry("a/b#1"), entry("a/b#2"), entry("a/b#1", Stage.MEASUREMENTS), entry("a/b#1", month="2026-01")
    )
    with database.transaction() as connection:
        ledger.forget(connection, MONTH, Stage.IMAGES, [])
        ledger.forget(connection, MONTH, Stage.IMAGES, {"a/b#1", "no/such#1"})
        assert names(ledger.entries_of(connection, MONTH, Stage.IMAGES)) == ["a/b#2"]
        assert names(ledger.entries_of(connection, MONTH, Stage.MEASUREMENTS)) == ["a/b#1"]
        assert names(ledger.entries_of(connection, "2026-01")) == ["a/b#1"]


@pytest.mark.slow
def test_a_big_month_is_recorded_and_forgotten_in_a_few_statements(database: Database) -> None:
    # with a parameter for each value, 7,000 entries are more than Postgres takes
    entries = [entry(f"a/b#{number}", state=ItemState.SKIPPED) for number in range(1, 7001)]
    sent: list[str] = []
    with database.transaction() as connection:
        event.listen(connection, "before_cursor_execute", lambda *told: sent.append(told[2]))
        ledger.record(connection, entries)
        assert len(ledger.entries_of(connection, MONTH)) == 7000
        ledger.forget(connection, MONTH, Stage.IMAGES, [f"a/b#{number}" for number in range(70_000)])
        assert ledger.entries_of(connection, MONTH) == []
    assert [request.split()[0] for request in sent] == ["CREATE", "INSERT", "DROP", "SELECT", "DELETE", "SELECT"]


def test_nothing_to_record_is_no_statement(database: Database) -> None:
    record(database)


def test_an_error_message_of_any_kind_can_be_recorded(database: Database) -> None:
    record(
        database,
        entry("a/b#1", state=ItemState.FAILED, detail="\x00 in an answer", log_tail="\udcff\n\x1b[31mred\x1b[0m"),
    )
    with database.transaction() as connection:
        (found,) = ledger.entries_of(connection, MONTH)
    assert (found.detail, found.log_tail) == ("\ufffd in an answer", "\ufffd\n\x1b[31mred\x1b[0m")


def test_the_database_refuses_a_month_that_is_none(database: Database) -> None:
    with pytest.raises(IntegrityError):
        record(database, entry("a/b#1", month="February"))


@pytest.mark.slow
def test_an_item_is_found_among_hundreds_of_thousands_by_its_index(database: Database) -> None:
    entries = [
        entry(f"a/b#{number}").model_copy(update={"month": month})
        for month in ("2026-01", "2026-02")
        for number in range(5000)
    ]
    with database.transaction() as connection:
        ledger.record(connection, entries)
    with database.transaction() as connection:
        sent: list[str] = []
        event.listen(connection, "before_cursor_execute", lambda *told: sent.append(told[2]))
        assert len(ledger.story(connection, "a/b#4711")) == 2
        plan = connection.exec_driver_sql(f"EXPLAIN {sent[0]}", {"item_1": "a/b#4711"}).scalars().all()
    assert any("ledger_by_item" in line for line in plan), plan
    assert not any("Seq Scan" in line for line in plan), plan
