"""Decisions about thousands of repositories: quick, written in few transactions, and logged in a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.intake import ListedRepository, ListVerdict
from formulacode_dagster.models.items import ItemKind, ItemState, Stage
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.repositories import withdraw
from formulacode_dagster.sources.github.tracking import TrackingRules
from formulacode_dagster.sources.intake.repositories.tracked import (
    DISCOVERY,
    EXAMPLES,
    decide,
    exclusions,
    standing_of,
    tracked_before,
    tracking_items,
)
from tests.support.entries import enter

MONTH = "2026-02"
RULES = TrackingRules(minimum_stars=500)


def rows(count: int) -> list[Repository]:
    return [
        Repository(
            month=MONTH,
            id=number,
            node_id=f"R_{number}",
            full_name=f"owner/r{number}",
            state=RepositoryState.ACTIVE,
            stars=number,
            config_path="asv.conf.json",
        )
        for number in range(1, count + 1)
    ]


def run(database, found: Sequence[Repository], listed=(), rules: TrackingRules = RULES):
    lines = {line.full_name.lower(): line for line in listed}
    calls = []

    def drop(connection, rejected):
        calls.append(len(rejected))
        withdraw(connection, MONTH, rejected)

    stage = StageRun(database, Stage.REPOSITORIES, MONTH, "run")
    summary = asyncio.run(
        run_items(stage, ItemKind.REPOSITORY, tracking_items(found, rules, lines), decide, drop, concurrency=500)
    )
    return summary, calls


@pytest.mark.slow
def test_thousands_are_decided_in_few_transactions_and_told_in_a_line(database):
    found = rows(3000)
    summary, calls = run(database, found)
    assert (summary.count(ItemState.DONE), summary.count(ItemState.REJECTED)) == (2501, 499)
    assert len(calls) <= 10
    (told,) = exclusions(summary.standing, found)
    assert (told.reason, told.count, len(told.examples)) == ("few_stars", 499, EXAMPLES)
    assert told.examples[0] == "owner/r499: 499 < 500"
    assert run(database, found)[0].worked == ()


def test_a_line_of_the_list_makes_its_repository_pending_and_no_other(database):
    found = rows(10)
    run(database, found)
    denied = ListedRepository(
        full_name="OWNER/r3", verdict=ListVerdict.DENY, reason="asked", listed_at=datetime(2026, 3, 1, tzinfo=UTC)
    )
    summary, _ = run(database, found, [denied])
    (entry,) = summary.worked
    assert (entry.item, entry.reason, entry.detail) == ("owner/r3", "denied", "asked")
    assert standing_of(denied, found, summary.standing) == entry
    later = denied.model_copy(update={"listed_at": datetime(2026, 4, 1, tzinfo=UTC)})
    assert run(database, found, [later])[0].worked == ()
    assert standing_of(denied.model_copy(update={"full_name": "a/b"}), found, summary.standing) is None


def test_other_rules_decide_anew(database):
    found = rows(10)
    assert run(database, found)[0].count(ItemState.REJECTED) == 10
    assert run(database, found, rules=TrackingRules(minimum_stars=6))[0].count(ItemState.REJECTED) == 5


def test_what_a_month_did_not_decide_is_looked_up_by_the_next(database):
    ends = {"a/done": "done", "a/gone": "failed vanished", "a/later": "skipped not_asked", "a/small": "rejected stars"}
    before = [enter(Stage.REPOSITORIES, item, end) for item, end in {**ends, DISCOVERY: "done"}.items()]
    with database.transaction() as connection:
        ledger.record(connection, [*before, enter(Stage.REPOSITORIES, "a/older", month="2026-01")])
        assert tracked_before(connection, "2026-03") == ("a/done", "a/gone", "a/later")
        assert tracked_before(connection, "2026-02") == ("a/older",)
        assert tracked_before(connection, "2026-01") == ()
