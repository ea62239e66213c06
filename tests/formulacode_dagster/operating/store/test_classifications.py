from __future__ import annotations

from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.evaluations import positives_by_month
from tests.records import make_classification


def test_verdicts_are_counted_by_month(database: Database) -> None:
    rows = [
        *(make_classification(month="2026-01", number=number, is_performance=number <= 2) for number in range(1, 6)),
        make_classification(month="2026-02", number=1, is_performance=False),
        make_classification(month="2026-03", number=1, is_performance=True),
    ]
    with database.transaction() as connection:
        CLASSIFICATIONS.save(connection, rows)
        assert positives_by_month(connection, ["2025-12", "2026-01", "2026-02"]) == {
            "2026-01": (2, 5),
            "2026-02": (0, 1),
        }
        assert positives_by_month(connection, []) == {}
