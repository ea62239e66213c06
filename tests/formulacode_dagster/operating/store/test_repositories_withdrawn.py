from __future__ import annotations

from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import IntakeCount
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, INTAKE_COUNTS, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.operating.store.repositories import withdraw
from tests.records import make_change, make_merged

MONTHS = ("2026-01", "2026-02")


def repository(id_: int, name: str) -> Repository:
    return Repository(
        month="2026-02", id=id_, node_id="", full_name=name, state=RepositoryState.ACTIVE, config_path="asv.conf.json"
    )


def take_in(connection, month: str, id_: int, name: str) -> None:
    patch = b"hi\n"
    facts = make_merged(month=month, repository_id=id_, repository=name, number=MONTHS.index(month) + 1)
    change = make_change(patch, month=month, repository_id=id_, number=facts.number)
    MERGED_PULL_REQUESTS.save(connection, [facts])
    save_changes(connection, [(change, patch)])
    INTAKE_COUNTS.save(connection, [IntakeCount(month=month, repository_id=id_, repository=name, reported=1, stored=1)])
    for stage in (Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS):
        for item in (name, facts.item):
            ledger.record(connection, [LedgerEntry(stage=stage, month=month, item=item, state=ItemState.DONE)])


def test_only_the_named_month_and_repositories_lose_their_intake(database):
    with database.transaction() as connection:
        for month in MONTHS:
            take_in(connection, month, 1, "a/old")
            take_in(connection, month, 2, "a/other")
    with database.transaction() as connection:
        assert withdraw(connection, "2026-02", [repository(1, "a/new")]) == 1
    with database.transaction() as connection:
        for artifact in (MERGED_PULL_REQUESTS, CHANGES, INTAKE_COUNTS):
            assert [row.repository_id for row in artifact.read(connection, "2026-02")] == [2]
            assert [row.repository_id for row in artifact.read(connection, "2026-01")] == [1, 2]
        left = [entry.item for entry in ledger.entries_of(connection, "2026-02", Stage.PULL_REQUESTS)]
        assert left == ["a/other", "a/other#2"], "also those under the name it had then"
        assert len(ledger.entries_of(connection, "2026-02", Stage.CLASSIFICATIONS)) == 4
        assert len(ledger.entries_of(connection, "2026-01")) == 8


def test_nothing_is_lost_by_those_that_had_nothing(database):
    with database.transaction() as connection:
        take_in(connection, "2026-02", 1, "a/one")
        assert withdraw(connection, "2026-02", []) == 0
        assert withdraw(connection, "2026-02", [repository(7, "b/never")]) == 0
        assert len(MERGED_PULL_REQUESTS.read(connection, "2026-02")) == 1
