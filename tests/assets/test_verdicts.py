from __future__ import annotations

from sqlalchemy import event

from assets.verdicts import Evidence, share_of_positives
from formulacode_dagster.models.classification import Category, Classification, Difficulty
from formulacode_dagster.store.artifacts import CLASSIFICATIONS
from formulacode_dagster.store.database import Database
from resources.hub import HubResource

HUB = HubResource(dataset="", endpoint="", token="", token_path="", home="")


def judged(month: str, positives: int, candidates: int) -> list[Classification]:
    return [
        Classification(
            month=month,
            repository_id=7,
            number=number,
            is_performance=number <= positives,
            category=next(iter(Category)),
            difficulty=next(iter(Difficulty)),
            confidence=0.5,
            reason="",
            model="m",
            prompt_version="1",
            patch_truncated=False,
        )
        for number in range(1, candidates + 1)
    ]


def test_the_share_of_positives_is_held_against_a_year_in_one_statement(database: Database) -> None:
    with database.transaction() as connection:
        for month, positives in (("2025-01", 300), ("2025-02", 20), ("2025-12", 20), ("2026-02", 290)):
            CLASSIFICATIONS.save(connection, judged(month, positives, 300))
    sent: list[str] = []
    with database.transaction() as connection:
        event.listen(connection, "before_cursor_execute", lambda *told: sent.append(told[2]))
        verdict = share_of_positives(Evidence(connection, "2026-02", HUB))
        first = share_of_positives(Evidence(connection, "2015-01", HUB))
    assert len(sent) == 2
    assert not verdict.passed
    # January 2025 is more than twelve months back
    assert verdict.figures["positives"] == 290
    assert verdict.figures["expected"] < 0.1
    assert first.figures["candidates"] == 0
