from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, Table, text

from formulacode_dagster.operating.store.column_types import StorableJson, StorableText, UtcTime, storable
from formulacode_dagster.operating.store.database import Database

HOSTILE = "a\x00b\ud800c\udfffd😀"
CLEAN = "a\ufffdb\ufffdc\ufffdd😀"


@pytest.fixture
def table(database: Database) -> Table:
    made = Table("t", MetaData(), Column("a", StorableText), Column("b", StorableJson), Column("c", UtcTime))
    made.create(database.engine)
    return made


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_text_becomes_storable_and_storable_text_stays_itself(anything: str) -> None:
    made = storable(anything)
    made.encode("utf-8")
    assert "\x00" not in made
    assert len(made) == len(anything)
    assert storable(made) is made


def test_text_and_json_take_every_string_wherever_it_stands(database: Database, table: Table) -> None:
    document = {HOSTILE: [HOSTILE, {"deep": (HOSTILE, None, True, 1, 1.5)}]}
    with database.transaction() as connection:
        connection.execute(table.insert(), [{"a": HOSTILE, "b": document}, {"a": None, "b": None}])
        found = connection.execute(table.select()).all()
        assert [row.a for row in found] == [CLEAN, None]
        assert found[0].b == {CLEAN: [CLEAN, {"deep": [CLEAN, None, True, 1, 1.5]}]}
        # what is compared with is cleaned like what was written
        assert connection.execute(table.select().where(table.c.a == HOSTILE)).one().a == CLEAN


def test_numbers_without_json_form_return_as_text(database: Database, table: Table) -> None:
    with database.transaction() as connection:
        connection.execute(table.insert(), [{"b": [math.inf, -math.inf, math.nan, 0.1]}])
        found = connection.execute(table.select()).one().b
    assert found == ["inf", "-inf", "nan", 0.1]
    assert float(found[0]) == math.inf


def test_instants_come_back_in_utc_whatever_the_server_is_set_to(database: Database, table: Table) -> None:
    moment = datetime(2026, 2, 1, 8, 59, 59, 999999, tzinfo=timezone(timedelta(hours=9)))
    with database.transaction() as connection:
        connection.execute(text("SET TIME ZONE 'Asia/Tokyo'"))
        connection.execute(table.insert(), [{"c": moment}, {"c": None}])
        found, nothing = connection.execute(table.select()).all()
    assert nothing.c is None
    assert found.c == moment
    assert found.c.isoformat() == "2026-01-31T23:59:59.999999+00:00"
    assert found.c.tzinfo is UTC
