from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.operating.store import hooks
from formulacode_dagster.operating.store.database import Database

ENTITY = "astropy/astropy#16222"


def test_a_result_comes_back_as_it_was_given(database: Database) -> None:
    results: list[Any] = ["text", 1, 1.5, True, None, [], {"a": [1, {"b": None}], "": "ü"}, 2**70, [[], {}]]
    with database.transaction() as connection:
        for number, result in enumerate(results):
            assert hooks.get(connection, ENTITY, "f", str(number)) is None
            assert hooks.put(connection, ENTITY, "f", str(number), result).result == result
    with database.transaction() as connection:
        kept = [hooks.get(connection, ENTITY, "f", str(number)) for number in range(len(results))]
    found = [outcome.result for outcome in kept if outcome is not None]
    assert [(type(result), result) for result in found] == [(type(result), result) for result in results]


def test_results_are_apart_by_entity_name_and_arguments(database: Database) -> None:
    keys = [(ENTITY, "f", "{}"), (ENTITY, "f", '{"n":1}'), (ENTITY, "g", "{}"), ("a/b#1", "f", "{}")]
    with database.transaction() as connection:
        for number, key in enumerate(keys):
            hooks.put(connection, *key, number)
        found = [hooks.get(connection, *key) for key in keys]
    assert [outcome.result for outcome in found if outcome is not None] == [0, 1, 2, 3]


def test_the_first_result_stays_and_every_caller_gets_it(database: Database) -> None:
    with database.transaction() as connection:
        assert hooks.put(connection, ENTITY, "f", "{}", "first").result == "first"
    with database.transaction() as connection:
        assert hooks.put(connection, ENTITY, "f", "{}", "second").result == "first"


def test_two_callers_at_once_get_the_same_result(database: Database) -> None:
    def call(number: int) -> Any:
        with database.transaction() as connection:
            return hooks.put(connection, ENTITY, "f", "{}", number).result

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(call, range(8)))) == 1


def test_what_json_would_change_is_refused(database: Database) -> None:
    results: list[Any] = [math.nan, math.inf, (1, 2), {1: "a"}, b"x", {"a": object()}, {"a": {1, 2}}]
    with database.transaction() as connection:
        for result in results:
            with pytest.raises(
                FormulaCodeError, match="'summarize' returned for astropy/astropy#16222 cannot be stored"
            ):
                hooks.put(connection, ENTITY, "summarize", "{}", result)
        assert hooks.get(connection, ENTITY, "summarize", "{}") is None


def test_text_that_postgres_refuses_is_cleaned_for_the_first_caller_too(database: Database) -> None:
    with database.transaction() as connection:
        assert hooks.put(connection, ENTITY, "f", "{}", "a\x00b").result == "a\ufffdb"


def test_results_of_code_that_changed_can_be_dropped(database: Database) -> None:
    with database.transaction() as connection:
        for entity in (ENTITY, "a/b#1", "a/b#2"):
            hooks.put(connection, entity, "f", "{}", "old")
            hooks.put(connection, entity, "g", "{}", "old")
        assert hooks.forget(connection, "f", "a/b#1") == 1
        assert hooks.forget(connection, "f") == 2
        assert hooks.get(connection, ENTITY, "f", "{}") is None
        assert hooks.get(connection, ENTITY, "g", "{}") is not None
