from __future__ import annotations

from sqlalchemy import func, select, text

from formulacode_dagster.measuring.measurement.persistence import MeasuredPullRequest, save
from formulacode_dagster.models.measurement import Occasion
from formulacode_dagster.operating.store.artifacts import MEASUREMENTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.measurements import (
    last_attempt,
    measurements_of,
    read_surveys,
    save_survey,
)
from formulacode_dagster.operating.store.tables import MEASUREMENTS_HISTORY
from tests.records import KEY, MONTH, make_measurement

TASK = (7, 1)


def test_a_measurement_is_never_replaced_and_the_newest_is_read(database: Database) -> None:
    first = make_measurement({"bench.a": 1.0})
    forced = make_measurement({"bench.a": 2.0}, occasion=Occasion.FORCED)
    with database.transaction() as connection:
        assert last_attempt(connection, MONTH, TASK) == 0
        save(connection, [MeasuredPullRequest(first)])
        save(connection, [MeasuredPullRequest(forced)])
    with database.transaction() as connection:
        assert [
            (measurement.attempt, measurement.speedup) for measurement in measurements_of(connection, MONTH, TASK)
        ] == [(1, 1.0), (2, 2.0)]
        (newest,) = MEASUREMENTS.read(connection, MONTH)
        assert (newest.attempt, newest.occasion, newest.speedup) == (2, Occasion.FORCED, 2.0)


def test_measurements_by_the_rules_before_are_kept_and_not_read(database: Database) -> None:
    with database.transaction() as connection:
        old = {**KEY, "attempt": 1, "document": {"is_faster": True}}
        connection.execute(MEASUREMENTS_HISTORY.insert(), [old])
        assert measurements_of(connection, MONTH, TASK) == []
        save(connection, [MeasuredPullRequest(make_measurement({"bench.a": 1.0}))])
        assert [measurement.attempt for measurement in measurements_of(connection, MONTH, TASK)] == [2]
        assert connection.execute(select(func.count()).select_from(MEASUREMENTS_HISTORY)).scalar_one() == 2


def test_the_view_names_the_verdict(database: Database) -> None:
    with database.transaction() as connection:
        save(connection, [MeasuredPullRequest(make_measurement({"bench.a": 2.0}))])
        row = connection.execute(text("SELECT verdict, speedup, attempt, occasion FROM measurements")).one()
    assert tuple(row) == ("faster", 2.0, 1, "first")


def test_ruled_out_benchmarks_are_read_by_suite_for_equal_inputs(database: Database) -> None:
    with database.transaction() as connection:
        save_survey(connection, MONTH, TASK, "one", suite="base", ruled_out=frozenset({"a"}))
        save_survey(connection, MONTH, TASK, "one", suite="later", ruled_out=frozenset({"b"}))
        save_survey(connection, MONTH, (7, 2), "one", suite="base", ruled_out=frozenset({"c"}))
    with database.transaction() as connection:
        assert read_surveys(connection, MONTH, TASK, "one") == {"base": {"a"}, "later": {"b"}}
        assert read_surveys(connection, MONTH, TASK, "two") == {}
        save_survey(connection, MONTH, TASK, "two", suite="base", ruled_out=frozenset({"d"}))
        assert read_surveys(connection, MONTH, TASK, "two") == {"base": {"d"}}
        assert read_surveys(connection, MONTH, TASK, "one") == {"later": {"b"}}
