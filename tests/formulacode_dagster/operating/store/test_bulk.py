from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DataError, IntegrityError

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.blobs import get_blob, put_blobs
from formulacode_dagster.operating.store.bulk import COPY_FROM_ROWS, insert_missing, insert_new, upsert
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import BLOBS, INTAKE_COUNTS, LEDGER

MONTH = "2026-02"
MANY = COPY_FROM_ROWS
FEW = COPY_FROM_ROWS - 1
BOTH_WAYS = (FEW, MANY)


def count(number: int, **fields: object) -> dict[str, Any]:
    plain = {"month": MONTH, "repository_id": number, "repository": "a/b", "reported": 1, "stored": 1, "checksum": ""}
    return {**plain, "added": 0, "changed": 0, "removed": 0, "unsearched": [], **fields}


def counts(number: int, **fields: object) -> list[dict[str, Any]]:
    return [count(index, **fields) for index in range(number)]


def stored(database: Database) -> list[dict[str, Any]]:
    with database.transaction() as connection:
        rows = connection.execute(select(INTAKE_COUNTS).order_by(INTAKE_COUNTS.c.repository_id)).mappings()
        return [dict(row) for row in rows]


def test_rows_are_added_and_replaced_by_key_however_many_they_are(database: Database) -> None:
    for number in BOTH_WAYS:
        with database.transaction() as connection:
            upsert(connection, INTAKE_COUNTS, counts(number))
            upsert(connection, INTAKE_COUNTS, counts(number, stored=2))
            upsert(connection, INTAKE_COUNTS, [])
        assert stored(database) == counts(number, stored=2)


def test_of_rows_with_the_same_key_the_last_one_stays(database: Database) -> None:
    for number in BOTH_WAYS:
        with database.transaction() as connection:
            upsert(connection, INTAKE_COUNTS, [*counts(number), *counts(number, stored=3)])
        assert stored(database) == counts(number, stored=3)


def test_what_is_there_may_also_stay(database: Database) -> None:
    for number in BOTH_WAYS:
        with database.transaction() as connection:
            insert_missing(connection, INTAKE_COUNTS, counts(3, stored=9))
            insert_missing(connection, INTAKE_COUNTS, counts(number))
            insert_missing(connection, INTAKE_COUNTS, [])
        assert stored(database)[:3] == counts(3, stored=9)
        assert len(stored(database)) == number


def test_new_rows_go_straight_to_their_table_and_none_may_be_there(database: Database) -> None:
    for number in BOTH_WAYS:
        rows = counts(number, month="2026-01" if number == FEW else MONTH)
        with database.transaction() as connection:
            insert_new(connection, INTAKE_COUNTS, rows)
            insert_new(connection, INTAKE_COUNTS, [])
        with pytest.raises(IntegrityError), database.transaction() as connection:
            insert_new(connection, INTAKE_COUNTS, rows)
        assert [row for row in stored(database) if row["month"] == rows[0]["month"]] == rows


def test_many_writes_of_one_transaction_share_nothing(database: Database) -> None:
    with database.transaction() as connection:
        for stored_now in range(3):
            upsert(connection, INTAKE_COUNTS, counts(MANY, stored=stored_now))
    assert stored(database) == counts(MANY, stored=2)


def test_both_ways_store_the_same_whatever_the_text(database: Database) -> None:
    hostile = "a\tb\nc\\.\\N\r\x00\ud800\"'{},é\u2028"
    moment = datetime(2026, 2, 1, 23, 30, 0, 123456, tzinfo=timezone(timedelta(hours=-5)))

    def entries(number: int, month: str) -> Iterator[LedgerEntry]:
        for index in range(number):
            yield LedgerEntry(
                stage=Stage.IMAGES,
                month=month,
                item=f"a/b#{index}",
                state=ItemState.FAILED,
                detail=hostile,
                log_tail="\\N",
                finished_at=moment,
            )

    with database.transaction() as connection:
        ledger.record(connection, list(entries(FEW, "2026-01")))
        ledger.record(connection, list(entries(MANY, "2026-02")))
        few = ledger.entries_of(connection, "2026-01")
        many = ledger.entries_of(connection, "2026-02")
    assert {(entry.detail, entry.log_tail, entry.finished_at) for entry in (*few, *many)} == {
        (hostile.replace("\x00", "\ufffd").replace("\ud800", "\ufffd"), "\\N", moment.astimezone(UTC))
    }


def test_bytes_are_kept_as_they_are(database: Database) -> None:
    contents = [bytes([number % 256]) * number for number in range(MANY + 10)]
    with database.transaction() as connection:
        keys = put_blobs(connection, "patch", [*contents, contents[1]])
        assert [get_blob(connection, key) for key in keys] == [*contents, contents[1]]
        assert len(connection.execute(select(BLOBS.c.sha256)).all()) == MANY + 10


def test_a_refused_row_has_the_same_error_both_ways_and_nothing_is_written(database: Database) -> None:
    faults: list[tuple[dict[str, Any], type[Exception]]] = [
        (count(999, stored=None), IntegrityError),
        (count(999, stored=2**40), DataError),
        (count(999, stored="many"), DataError),
    ]
    for number in BOTH_WAYS:
        for row, kind in faults:
            with pytest.raises(kind), database.transaction() as connection:
                upsert(connection, INTAKE_COUNTS, [*counts(number - 1), row])
    assert stored(database) == []


def test_a_connection_lost_in_copy_is_a_server_that_is_gone(database: Database) -> None:
    session = 0

    class Cutting(dict[str, Any]):
        """A row at which the server ends the session: apart from its key, a row is read only in COPY."""

        def __getitem__(self, name: str) -> Any:
            if name == "stored":
                with database.engine.connect() as other:
                    other.execute(text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": session})
            return super().__getitem__(name)

    with database.transaction() as connection:
        upsert(connection, INTAKE_COUNTS, counts(MANY))

    def write() -> None:
        nonlocal session
        with database.transaction() as connection:
            session = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            rows = counts(MANY * 200, stored=2)
            upsert(connection, INTAKE_COUNTS, [*rows[:MANY], Cutting(rows[MANY]), *rows[MANY + 1 :]])

    with pytest.raises(OutsideSystemError, match="does not answer"):
        write()
    assert stored(database) == counts(MANY)


def test_a_disk_that_fills_up_in_the_merge_is_named(database: Database) -> None:
    full = """
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON intake_counts EXECUTE FUNCTION full_disk();
    """
    with database.transaction() as connection:
        connection.execute(text(full))
    for number in BOTH_WAYS:
        with (
            pytest.raises(OutsideSystemError, match="out of resources: could not extend file"),
            database.transaction() as connection,
        ):
            upsert(connection, INTAKE_COUNTS, counts(number))


def test_two_writers_of_the_same_rows_wait_for_each_other(database: Database) -> None:
    entries = [
        LedgerEntry(stage=Stage.IMAGES, month=MONTH, item=f"a/b#{index}", state=ItemState.DONE) for index in range(MANY)
    ]
    failures: list[BaseException] = []

    def write(run: str, rows: list[LedgerEntry]) -> None:
        try:
            for _ in range(5):
                with database.transaction() as connection:
                    ledger.record(connection, [row.model_copy(update={"run_id": run}) for row in rows])
        except OutsideSystemError as error:
            failures.append(error)

    writers = [
        threading.Thread(target=write, args=("one", entries)),
        threading.Thread(target=write, args=("two", entries[::-1])),
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    with database.transaction() as connection:
        assert len(set(connection.execute(select(LEDGER.c.run_id)).scalars())) == 1
