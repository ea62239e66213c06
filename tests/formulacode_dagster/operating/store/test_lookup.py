from __future__ import annotations

import pytest

from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import MERGED_PULL_REQUESTS, REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.lookup import find_pull_request, story_of
from formulacode_dagster.operating.store.pull_requests import save_changes
from tests.records import make_change, make_merged
from tests.support.entries import enter

PATCH = b"diff --git a/a.py b/a.py\n"


def merged(month: str, repository: str = "acme/wheels", repository_id: int = 7, number: int = 3) -> MergedPullRequest:
    return make_merged(
        month=month, repository_id=repository_id, repository=repository, number=number, title=f"as of {month}"
    )


@pytest.fixture
def stored(database: Database) -> Database:
    tracked = Repository(
        month="2026-02",
        id=7,
        node_id="R_7",
        full_name="acme/rolls",
        aliases=("acme/wheels", "old/wheels"),
        state=RepositoryState.ACTIVE,
        config_path="asv.conf.json",
    )
    change = make_change(PATCH, month="2026-02", repository_id=7, number=3)
    with database.transaction() as connection:
        REPOSITORIES.save(connection, [tracked])
        rows = [merged("2026-02"), merged("2026-02", "acme/other", 8), merged("2026-02", number=4)]
        MERGED_PULL_REQUESTS.save(connection, rows)
        save_changes(connection, [(change, PATCH)])
    return database


@pytest.mark.parametrize("name", ["acme/wheels", "ACME/Wheels", "acme/rolls", "old/wheels", "Old/Wheels"])
def test_a_pull_request_is_found_by_any_name_of_its_repository(stored: Database, name: str) -> None:
    with stored.transaction() as connection:
        found = find_pull_request(connection, name, 3)
    assert found is not None
    assert (found.facts, found.patch) == (merged("2026-02"), PATCH)
    assert found.change is not None


def test_one_whose_patch_was_not_read_yet_has_its_facts(stored: Database) -> None:
    with stored.transaction() as connection:
        found = find_pull_request(connection, "acme/wheels", 4)
    assert found is not None
    assert (found.facts.number, found.change, found.patch) == (4, None, None)


@pytest.mark.parametrize(("name", "number"), [("acme/wheels", 5), ("acme/wheel", 3), ("wheels", 3)])
def test_what_was_never_taken_in_is_not_found(stored: Database, name: str, number: int) -> None:
    with stored.transaction() as connection:
        assert find_pull_request(connection, name, number) is None


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("ACME/Rolls#3", ["acme/rolls#3"]),
        ("OLD/wheels#3", ["acme/rolls#3"]),
        ("Acme/Rolls", ["acme/rolls"]),
        # a name that items go by means these, even if a renamed repository once had it
        ("acme/Wheels#3", ["acme/wheels#3"]),
        ("acme/rolls#4", []),
        ("never/seen#3", ["never/seen#3"]),
    ],
)
def test_a_story_is_found_in_any_case_and_by_former_names(stored: Database, name: str, items: list[str]) -> None:
    known = ("acme/rolls#3", "acme/rolls", "acme/wheels#3", "never/seen#3")
    other = Repository(
        month="2026-01",
        id=9,
        node_id="R_9",
        full_name="acme/wheels",
        state=RepositoryState.ACTIVE,
        config_path="asv.conf.json",
    )
    with stored.transaction() as connection:
        REPOSITORIES.save(connection, [other])
        ledger.record(connection, [enter(Stage.PULL_REQUESTS, item) for item in known])
        assert [entry.item for entry in story_of(connection, ItemName.parse(name))] == items
