from __future__ import annotations

from formulacode_dagster.models.classification import Category, Classification, Difficulty
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.evaluations import positives_by_month


def judged(month: str, number: int, is_performance: bool) -> Classification:
    return Classification(
        month=month,
        repository_id=7,
        number=number,
        is_performance=is_performance,
        category=next(iter(Category)),
        difficulty=next(iter(Difficulty)),
        confidence=0.5,
        reason="",
        model="m",
        prompt_version="1",
        patch_truncated=False,
    )


def test_verdicts_are_counted_by_month(database: Database) -> None:
    rows = [
        *(judged("2026-01", number, number <= 2) for number in range(1, 6)),
        judged("2026-02", 1, False),
        judged("2026-03", 1, True),
    ]
    with database.transaction() as connection:
        CLASSIFICATIONS.save(connection, rows)
        assert positives_by_month(connection, ["2025-12", "2026-01", "2026-02"]) == {
            "2026-01": (2, 5),
            "2026-02": (0, 1),
        }
        assert positives_by_month(connection, []) == {}
