"""Output of `fc-data why` and `fc-data funnel` for a month and for a pull request."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from formulacode_dagster.cli.app import app
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.blobs import put_log
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import Spent, add_spending
from tests.support.command_line import FcData, complaint

MONTH = "2026-02"


@pytest.fixture
def told(database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database with one pull request's story, which the settings name."""

    def entry(stage: Stage, state: ItemState, reason: str = "", **fields: object) -> LedgerEntry:
        facts = {"stage": stage, "month": MONTH, "item": "a/b#1", "state": state, "reason": reason, "run_id": "r"}
        return LedgerEntry.model_validate({**facts, **fields})

    cost = Cost(tokens_in=900, model_calls=1)
    with database.transaction() as connection:
        add_spending(connection, [Spent(MONTH, Stage.CLASSIFICATIONS, "r", cost, "a/b#1")])
        ledger.record(
            connection,
            [
                entry(Stage.PULL_REQUESTS, ItemState.DONE, detail="squash, 1 files, 300 bytes"),
                entry(Stage.CLASSIFICATIONS, ItemState.DONE, cost=cost),
                entry(Stage.IMAGES, ItemState.FAILED, "build", detail="does not build", log_tail="[/gcc] error"),
            ],
        )
        put_log(
            connection,
            stage=Stage.IMAGES,
            month=MONTH,
            item="a/b#1",
            attempt=1,
            state=ItemState.FAILED,
            run_id="r",
            text="the whole log\n[/gcc] error\n",
        )
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    return database


def invoke(*arguments: str) -> str:
    answer = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.output


def test_why_tells_the_whole_story(told: Database) -> None:
    text = invoke("why", "a/b#1")
    for said in ("pull_requests", "squash, 1 files, 300 bytes", "'tokens_in': 900", "failed (build)", "[/gcc] error"):
        assert said in text
    assert "the whole log" not in text


def test_why_prints_the_log_of_a_stage_that_kept_one(told: Database) -> None:
    assert invoke("why", "a/b#1", "--log", "images").rstrip().endswith("the whole log\n[/gcc] error")
    assert "no log of measurements was kept" in invoke("why", "a/b#1", "--log", "measurements")


def test_the_funnel_is_shown(told: Database) -> None:
    text = invoke("funnel", "--month", MONTH)
    assert "Funnel of 2026-02" in text
    assert "build" in text
    assert "900 tokens in 1 model calls" in " ".join(text.split())


def test_a_later_month_is_expected_to_be_like_the_ones_before(told: Database) -> None:
    text = " ".join(invoke("plan", "--month", "2026-04", "--pull-requests", "10").split())
    assert "Expected of 2026-04" in text
    assert "merged pull requests 10 counted" in text
    assert "By 2026-02." in text
    # the one pull request of that month cost 900 tokens
    assert "tokens asked 9,000 450 to 9,000 classifications" in text


def test_a_month_without_an_earlier_one_has_no_plan(told: Database, database_url: str, call_fc_data: FcData) -> None:
    first = call_fc_data("plan", "--month", MONTH, FC_DATABASE_URL=database_url)
    assert "no month before 2026-02 was taken in" in complaint(first)


def test_what_nobody_ran_is_no_empty_funnel_and_no_empty_story(
    told: Database, database_url: str, call_fc_data: FcData
) -> None:
    unknown = call_fc_data("funnel", "--month", "2026-01", FC_DATABASE_URL=database_url)
    assert complaint(unknown) == "no data on 2026-01. Run it first: fc-data run --month 2026-01"
    nobody = call_fc_data("why", "a/b#2", FC_DATABASE_URL=database_url)
    assert "no data on a/b#2. Run its month first" in complaint(nobody)
