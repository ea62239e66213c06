from __future__ import annotations

from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.repositories import add_alias

MONTH, OTHER = "2026-02", "2026-01"


def tracked(full_name: str, *, month: str = MONTH, number: int = 7, aliases: tuple[str, ...] = ()) -> Repository:
    return Repository(
        month=month,
        id=number,
        node_id=f"R_{number}",
        full_name=full_name,
        aliases=aliases,
        state="active",
        config_path="asv.conf.json",
    )


def keep(database: Database, *rows: Repository) -> None:
    with database.transaction() as connection:
        REPOSITORIES.save(connection, rows)
        ledger.record(
            connection,
            [
                LedgerEntry(stage=Stage.REPOSITORIES, month=row.month, item=row.full_name, state=ItemState.DONE)
                for row in rows
            ],
        )


def test_a_renamed_repository_keeps_its_old_name_and_stays_tracked(database: Database) -> None:
    keep(database, tracked("a/old"), tracked("c/d", number=8), tracked("a/old", month=OTHER))
    with database.transaction() as connection:
        assert add_alias(connection, MONTH, 7, "a/old", "b/new")
        assert REPOSITORIES.read(connection, MONTH) == [tracked("b/new", aliases=("a/old",)), tracked("c/d", number=8)]
        assert ledger.items_in_state(connection, MONTH, Stage.REPOSITORIES, ItemState.DONE) == ["b/new", "c/d"]
        # a month is what it was then
        assert REPOSITORIES.read(connection, OTHER) == [tracked("a/old", month=OTHER)]
        assert ledger.items_in_state(connection, OTHER, Stage.REPOSITORIES, ItemState.DONE) == ["a/old"]


def test_repeating_a_rename_changes_nothing_and_reverting_leaves_no_alias(database: Database) -> None:
    keep(database, tracked("a/old"))
    with database.transaction() as connection:
        assert add_alias(connection, MONTH, 7, "a/old", "b/new")
        assert not add_alias(connection, MONTH, 7, "A/Old", "b/new")
        assert add_alias(connection, MONTH, 7, "b/new", "c/newer")
        assert REPOSITORIES.read(connection, MONTH) == [tracked("c/newer", aliases=("a/old", "b/new"))]
        assert add_alias(connection, MONTH, 7, "c/newer", "a/old")
        assert REPOSITORIES.read(connection, MONTH) == [tracked("a/old", aliases=("b/new", "c/newer"))]


def test_another_spelling_is_a_new_name_and_no_alias(database: Database) -> None:
    keep(database, tracked("A/B"))
    with database.transaction() as connection:
        assert add_alias(connection, MONTH, 7, "A/B", "a/b")
        assert REPOSITORIES.read(connection, MONTH) == [tracked("a/b")]


def test_a_name_that_another_entry_holds_already_is_entered_once(database: Database) -> None:
    keep(database, tracked("a/old"))
    with database.transaction() as connection:
        stale = LedgerEntry(stage=Stage.REPOSITORIES, month=MONTH, item="b/new", state=ItemState.REJECTED)
        ledger.record(connection, [stale])
        assert add_alias(connection, MONTH, 7, "a/old", "b/new")
        (entry,) = ledger.entries_of(connection, MONTH, Stage.REPOSITORIES)
    assert (entry.item, entry.state) == ("b/new", ItemState.DONE)


def test_a_repository_that_is_not_part_of_the_month_has_no_alias(database: Database) -> None:
    with database.transaction() as connection:
        assert not add_alias(connection, MONTH, 7, "a/old", "b/new")
