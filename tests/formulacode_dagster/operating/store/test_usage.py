from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import API_USAGE
from formulacode_dagster.operating.store.usage import add_usage, usage_totals

MONTH = "2026-02"


def used(hour: int = 0, **fields: object) -> ApiUsage:
    plain: dict[str, object] = {
        "run_id": "run-one",
        "stage": Stage.PULL_REQUESTS,
        "month": MONTH,
        "resource": "graphql",
        "started_at": datetime(2026, 3, 1, hour, tzinfo=UTC),
        "requests": 10,
        "points": 12,
        "seconds": 1.5,
        "bytes": 5_000_000_000,
    }
    return ApiUsage.model_validate({**plain, **fields})


def test_lines_are_added_and_those_before_stay(database: Database) -> None:
    first, second, other = used(), used(1, run_id="run-two"), used(month="2026-01")
    for rows in ([second], [first, other], []):
        with database.transaction() as connection:
            add_usage(connection, rows)
    with database.transaction() as connection:
        rows = connection.execute(select(API_USAGE).order_by(API_USAGE.c.month, API_USAGE.c.run_id)).mappings()
        assert [ApiUsage.model_validate(dict(row)) for row in rows] == [other, first, second]


def test_a_month_is_summed_by_stage_and_resource(database: Database) -> None:
    lines = [
        used(),
        used(1, run_id="run-two", limit_hits=1),
        used(resource="core", requests=3, points=3),
        used(stage=Stage.REPOSITORIES, resource="code_search"),
        used(month="2026-01"),
    ]
    with database.transaction() as connection:
        add_usage(connection, lines)
        totals = usage_totals(connection, MONTH)
        (of_one_run,) = usage_totals(connection, MONTH, "run-two")
    assert [(total.stage, total.resource) for total in totals] == [
        (Stage.REPOSITORIES, "code_search"),
        (Stage.PULL_REQUESTS, "core"),
        (Stage.PULL_REQUESTS, "graphql"),
    ]
    assert (totals[2].runs, totals[2].requests, totals[2].points, totals[2].limit_hits) == (2, 20, 24, 1)
    assert (totals[2].seconds, totals[2].bytes) == (3.0, 10_000_000_000)
    assert (of_one_run.runs, of_one_run.requests) == (1, 10)


def test_the_same_line_is_not_counted_twice(database: Database) -> None:
    with pytest.raises(IntegrityError), database.transaction() as connection:
        add_usage(connection, [used(), used()])


def test_less_than_nothing_cannot_be_used(database: Database) -> None:
    for field in ("requests", "points", "waited_seconds", "bytes"):
        with pytest.raises(IntegrityError, match=field), database.transaction() as connection:
            add_usage(connection, [used(**{field: -1})])
