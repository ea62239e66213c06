"""`fc-data review` stores what a person thinks of a task, and `fc-data why` shows it."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Release
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.acceptances import reviews_of
from formulacode_dagster.operating.store.artifacts import MERGED_PULL_REQUESTS, RELEASES
from formulacode_dagster.operating.store.database import Database
from tests.records import make_merged, make_release
from tests.support.command_line import FcData

MONTH = "2026-02"
BY = ("--by", "Ada Byron")


@pytest.fixture
def known(database: Database) -> Database:
    """A database with one pull request."""
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [make_merged(month=MONTH, repository="owner/repo", number=123)])
        done = LedgerEntry(stage=Stage.PULL_REQUESTS, month=MONTH, item="owner/repo#123", state=ItemState.DONE)
        ledger.record(connection, [done])
    return database


def test_the_documented_review_is_stored_next_to_earlier_ones_and_shown(
    known: Database, database_url: str, call_fc_data: FcData
) -> None:
    settings = {"FC_DATABASE_URL": database_url}
    for verdict, note in (("doubtful", "[/red] unclear"), ("approved", "slow, as users say")):
        options = ("--verdict", verdict, *BY, "--note", note)
        done = call_fc_data("review", "owner/repo#123", *options, **settings)
        assert done.returncode == 0, done.stderr
    assert "owner__repo-123 is approved by Ada Byron; reviews: 2" in done.stdout
    with known.transaction() as connection:
        (reviews,) = reviews_of(connection, MONTH).values()
    assert [(each.verdict, each.reviewed_by, each.release) for each in reviews] == [
        ("doubtful", "Ada Byron", ""),
        ("approved", "Ada Byron", ""),
    ]
    shown = call_fc_data("why", "owner/repo#123", **settings).stdout
    for told in ("Reviews of it", "[/red] unclear", "slow, as users say"):
        assert told in shown


def test_a_review_names_the_newest_release_at_the_configured_destination(
    known: Database, database_url: str, call_fc_data: FcData
) -> None:
    def release(destination: str, number: int) -> Release:
        return make_release(
            tag=Month.parse(MONTH).tag(number), number=number, destination=destination, task_ids=("owner__repo-123",)
        )

    rows = [release(where, number) for where, last in (("hub:a/b", 0), ("hub:c/d", 1)) for number in range(last + 1)]
    with known.transaction() as connection:
        RELEASES.save(connection, rows)
        assert RELEASES.read(connection, MONTH) == sorted(rows, key=lambda row: (row.tag, row.destination))
    for dataset in ("a/b", "c/d"):
        settings = {"FC_DATABASE_URL": database_url, "HF_DATASET": dataset}
        options = ("--verdict", "approved", *BY, "--note", "slow")
        assert call_fc_data("review", "owner/repo#123", *options, **settings).returncode == 0
    with known.transaction() as connection:
        (reviews,) = reviews_of(connection, MONTH).values()
    assert [each.release for each in reviews] == ["formulacode@2026-03", "formulacode@2026-03.1"]


@pytest.mark.parametrize(
    ("item", "note", "said"),
    [("owner/repo#9", "x", "not a known pull request"), ("owner/repo#123", " ", "needs a name and a note")],
)
def test_a_review_of_nothing_or_without_a_note_is_refused(
    known: Database, database_url: str, call_fc_data: FcData, item: str, note: str, said: str
) -> None:
    options = ("--verdict", "approved", *BY, "--note", note)
    done = call_fc_data("review", item, *options, FC_DATABASE_URL=database_url)
    assert done.returncode == 1
    assert said in done.stderr
