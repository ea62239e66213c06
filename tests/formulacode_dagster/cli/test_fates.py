"""A run of named items ends with what became of each."""

from __future__ import annotations

import pytest

from formulacode_dagster.cli import fates
from formulacode_dagster.cli.fates import fate_of
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from tests.formulacode_dagster.sources.offline.test_export import repository
from tests.support.entries import MONTH, enter

ITEM = ItemName.parse("acme/tool#7")
HERE = Month.parse(MONTH)


def fate(database: Database, *entries) -> str:
    with database.transaction() as connection:
        ledger.record(connection, list(entries))
    return fate_of(database, HERE, ITEM)


def test_a_rejected_one_is_rejected_where_and_by_what(database: Database) -> None:
    said = fate(
        database,
        enter(Stage.PULL_REQUESTS, str(ITEM)),
        enter(Stage.CLASSIFICATIONS, str(ITEM), "rejected title").model_copy(update={"detail": "says 'docs'"}),
    )
    assert said == "acme/tool#7: rejected (title) at classifications: says 'docs'. All of it: fc-data why acme/tool#7"


def test_one_of_another_month_is_named_with_the_command(database: Database) -> None:
    said = fate(database, enter(Stage.PULL_REQUESTS, str(ITEM), month="2026-01"))
    assert said == "acme/tool#7 was merged in 2026-01: fc-data run --month 2026-01 --only acme/tool#7"


def test_one_of_a_repository_that_is_not_tracked_says_why(database: Database) -> None:
    said = fate(database, enter(Stage.REPOSITORIES, ITEM.repository, "rejected no_suite"))
    assert said == f"acme/tool#7: its repository is not tracked in {MONTH}: rejected (no_suite) at repositories"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Month.parse("2026-01").start, "was merged in 2026-01: fc-data run --month 2026-01 --only acme/tool#7"),
        (HERE.start, "and acme/tool is not among the repositories with asv benchmarks"),
        (ItemFailure(FailureKind.NOT_MERGED, "it is open"), "is no merged pull request of acme/tool"),
        (OutsideSystemError("github", "it is away"), "no data, and GitHub could not be asked"),
    ],
)
def test_github_is_asked_about_one_that_no_month_knows(
    database: Database, monkeypatch: pytest.MonkeyPatch, answer, said: str
) -> None:
    async def merged_at(_: ItemName):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(fates, "_merged_at", merged_at)
    assert said in fate(database)


def test_an_unknown_repository_has_no_benchmarks(database: Database) -> None:
    assert "not among the repositories with asv benchmarks" in fate_of(database, HERE, ItemName.parse("acme/tool"))


def test_a_name_in_another_case_is_the_same_item(database: Database) -> None:
    tracked = repository("acme/tool", id=7)
    with database.transaction() as connection:
        REPOSITORIES.save(connection, [tracked])
        ledger.record(connection, [enter(Stage.PULL_REQUESTS, str(ITEM)), enter(Stage.REPOSITORIES, "acme/tool")])
    for typed in ("Acme/Tool#7", "Acme/Tool"):
        said = fate_of(database, HERE, ItemName.parse(typed))
        assert said.startswith(f"{typed.lower()}: done at")
        assert said.endswith(f"fc-data why {typed.lower()}")
