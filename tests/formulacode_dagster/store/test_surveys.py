from __future__ import annotations

from formulacode_dagster.store.database import Database
from formulacode_dagster.store.surveys import read_surveys, save_survey

MONTH, KEY = "2026-02", (7, 12)


def test_what_is_ruled_out_is_read_by_suite_for_the_same_inputs_alone(database: Database) -> None:
    with database.transaction() as connection:
        save_survey(connection, MONTH, KEY, "one", suite="base", ruled_out=frozenset({"a"}))
        save_survey(connection, MONTH, KEY, "one", suite="later", ruled_out=frozenset({"b"}))
        save_survey(connection, MONTH, (7, 13), "one", suite="base", ruled_out=frozenset({"c"}))
    with database.transaction() as connection:
        assert read_surveys(connection, MONTH, KEY, "one") == {"base": {"a"}, "later": {"b"}}
        assert read_surveys(connection, MONTH, KEY, "two") == {}
        save_survey(connection, MONTH, KEY, "two", suite="base", ruled_out=frozenset({"d"}))
        assert read_surveys(connection, MONTH, KEY, "two") == {"base": {"d"}}
        assert read_surveys(connection, MONTH, KEY, "one") == {"later": {"b"}}
