"""Breakpoints in Postgres and out of it again."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.measuring.breakpoints.persistence import (
    NAMED_COMMITS,
    NAMED_STEPS,
    Breakpoints,
    load_breakpoints,
    methods_of,
    save_breakpoints,
)
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source

BETWEEN = {
    "before_revision": 10,
    "after_revision": 12,
    "before_hash": "a" * 40,
    "after_hash": None,
    "date": datetime(2026, 2, 1, tzinfo=UTC),
}
STEP = {
    **BETWEEN,
    "series": 3,
    "benchmark": "bench.time_it",
    "parameters": ["'é'", ""],
    "before": 2.0,
    "after": 1.0,
    "ratio": 0.5,
    "ratio_low": None,
    "ratio_high": None,
    "points_before": 7,
    "points_after": 9,
    "direction": "improvement",
}
COMMIT = {
    **BETWEEN,
    "improved": 1,
    "regressed": 0,
    "steps": 1,
    "median_ratio": 0.5,
    "largest_change": None,
    "pull_request": 7,
}


def test_breakpoints_are_kept_by_method_and_replaced(database: Database) -> None:
    two = Breakpoints(pl.DataFrame([STEP, STEP], NAMED_STEPS), pl.DataFrame([COMMIT], NAMED_COMMITS))
    none = Breakpoints(pl.DataFrame(schema=NAMED_STEPS), pl.DataFrame(schema=NAMED_COMMITS))
    with database.transaction() as connection:
        for method in (Method.SEEDED, Method.ASV):
            save_breakpoints(connection, "sample", Source.PUBLISHED, method, two)
        assert sorted(methods_of(connection, "sample", Source.PUBLISHED)) == [Method.ASV, Method.SEEDED]
        save_breakpoints(connection, "sample", Source.PUBLISHED, Method.ASV, none)
        kept = load_breakpoints(connection, "sample", Source.PUBLISHED)
        replaced = load_breakpoints(connection, "sample", Source.PUBLISHED, Method.ASV)
        assert methods_of(connection, "sample", Source.RESULTS) == []
    assert kept.steps.equals(two.steps)
    assert kept.commits.equals(two.commits)
    assert replaced.steps.equals(none.steps)
