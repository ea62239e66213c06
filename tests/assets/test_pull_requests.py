"""The asset over real HTTP, a real Postgres and real mirrors: what a month costs, keeps, and says that it changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets.checks import JudgedMonth
from assets.pull_requests import counts_match, mirror_knows_no_more, pull_requests, search_shows_all
from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.measuring.breakpoints.persistence import (
    NAMED_COMMITS,
    NAMED_STEPS,
    Breakpoints,
    save_breakpoints,
)
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.identity import stand_in_number
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import CandidateSource
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import DASHBOARD_CANDIDATES, MERGED_PULL_REQUESTS, REPOSITORIES
from formulacode_dagster.operating.store.bulk import upsert
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import iterate_done, merged_names
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import DASHBOARDS
from resources.defaults import default_resources
from tests.support.gates import open_gates
from tests.support.git_world import BareRepository
from tests.support.github import FEBRUARY, World

MONTH = FEBRUARY.key
SIZES = {"demo/empty": 0, "demo/large": 5, "demo/small": 2}
Run = Callable[..., dict[str, Any]]


def every_hour(count: int) -> Iterator[datetime]:
    return (FEBRUARY.start + timedelta(hours=hour) for hour in range(count))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three repositories, one of which merged nothing in the month."""
    world = World(tmp_path / "served")
    for name, count in SIZES.items():
        world.merge(name, every_hour(count))
    return world


def track(database: Database, rows: list[Repository]) -> None:
    with database.transaction() as connection:
        REPOSITORIES.replace_month(connection, MONTH, rows)
        done = [
            LedgerEntry(stage=Stage.REPOSITORIES, month=MONTH, item=row.full_name, state=ItemState.DONE) for row in rows
        ]
        ledger.record(connection, done)


@pytest.fixture
def run(
    database: Database,
    database_url: str,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dagster_instance: dg.DagsterInstance,
) -> Run:
    """Materialize the month; returns the metadata."""
    track(database, world.rows())
    open_gates(database, pull_requests, MONTH)
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("GH_TOKENS", "one")
    monkeypatch.setenv("GITHUB_CLONE_URL", world.folder.as_uri())

    def materialize(**config: Any) -> dict[str, Any]:
        with world.serve() as url:
            monkeypatch.setenv("GITHUB_API_URL", url)
            known = default_resources()
            wanted = set(pull_requests.definition.required_resource_keys) & known.keys()
            done = dg.materialize(
                [pull_requests.definition],
                partition_key=MONTH,
                instance=dagster_instance,
                resources={name: known[name] for name in wanted},
                run_config={"ops": {"pull_requests": {"config": config}}},
            )
        (event,) = done.asset_materializations_for_node("pull_requests")
        return {name: value.value for name, value in event.metadata.items()}

    return materialize


def entries(database: Database) -> dict[str, LedgerEntry]:
    with database.transaction() as connection:
        return {entry.item: entry for entry in ledger.entries_of(connection, MONTH, Stage.PULL_REQUESTS)}


def judge(database: Database) -> CheckFinding:
    return counts_match.judge(JudgedMonth(database, Stage.PULL_REQUESTS, MONTH, "run"))


@pytest.mark.slow
def test_a_month_is_counted_and_searched_once(run, world, database):
    first = run()
    assert world.books["total"] == 3, "one count, one search, and the list of those that merged nothing"
    assert first["api_points"] == world.books["points"]["graphql"] == 3
    assert (first["dagster/row_count"], first["rows_added"], first["items_done"]) == (7, 7, 7)
    again = run()
    assert world.books["total"] == 0
    assert again["checksum"] == first["checksum"]
    assert (again["rows_added"], again["rows_changed"], again["rows_removed"]) == (0, 0, 0)
    assert judge(database).passed


@pytest.mark.slow
def test_two_intakes_of_a_closed_month_are_seen_to_be_identical(run):
    first, again = run(), run(force=True)
    assert (again["worked_in_this_run"], again["checksum"]) == (3 + 7, first["checksum"])
    assert (again["rows_added"], again["rows_changed"], again["rows_removed"]) == (0, 0, 0)


@pytest.mark.slow
def test_changes_since_the_last_intake_are_counted_and_read_again(run, world, database):
    first = run()
    world.facts["demo/large"] = {
        "pull_requests": [
            {"number": 1, "merged_at": "2026-03-02T00:00:00Z"},
            {"number": 2, "title": "Another title"},
            {"number": 3, "merged_at": "2026-02-20T00:00:00Z"},
        ]
    }
    second = run(force=True)
    assert (second["rows_added"], second["rows_changed"], second["rows_removed"]) == (0, 2, 1)
    assert second["checksum"] != first["checksum"]
    assert second["dagster/row_count"] == 6
    assert "demo/large#1" not in entries(database)
    assert judge(database).passed


@pytest.mark.slow
def test_a_renamed_repository_keeps_one_row_and_an_alias(run, world, database):
    run(only=["demo/small"])
    (world.folder / "demo/large.git").rename(world.folder / "demo/huge.git")
    world.facts["demo/huge"] = {"id": world_id(database, "demo/large"), "former_names": ["demo/large"]}
    del world.facts["demo/large"]
    assert run()["rows_added"] == 5
    with database.transaction() as connection:
        names = {row.full_name: row.aliases for row in REPOSITORIES.read(connection, MONTH)}
        stored = [row.repository for row in MERGED_PULL_REQUESTS.read(connection, MONTH)]
    assert names["demo/huge"] == ("demo/large",)
    assert "demo/large" not in names
    assert sorted(set(stored)) == ["demo/huge", "demo/small"]
    assert len(stored) == 7
    assert entries(database)["demo/huge"].state is ItemState.DONE
    assert not [item for item in entries(database) if item.startswith("demo/large")]
    assert judge(database).passed
    run()
    assert world.books["total"] == 0


@pytest.mark.slow
def test_a_repository_renamed_after_intake_keeps_its_name_in_the_month(run, world, database):
    def digests() -> list[tuple[str, str]]:
        with database.transaction() as connection:
            return [(name.item, name.digest) for name in merged_names(connection, MONTH)]

    # the sandbox derives other heads from the name
    merged = [{"number": number, "head_sha": str(number) * 40, "closes": [9]} for number in range(1, 6)]
    issue = {"number": 9, "title": "Slow", "created_at": "2026-01-01T00:00:00Z"}
    world.facts["demo/large"] = {"pull_requests": merged, "issues": [issue]}
    run()
    before = digests()
    (world.folder / "demo/large.git").rename(world.folder / "demo/huge.git")
    world.facts["demo/huge"] = world.facts.pop("demo/large") | {
        "id": world_id(database, "demo/large"),
        "former_names": ["demo/large"],
    }
    for _ in range(2):
        again = run(force=True)
        assert (again["rows_added"], again["rows_changed"], again["rows_removed"]) == (0, 0, 0)
        assert digests() == before
        with database.transaction() as connection:
            names = {row.full_name: row.aliases for row in REPOSITORIES.read(connection, MONTH)}
        assert names == {"demo/empty": (), "demo/large": ("demo/huge",), "demo/small": ()}
        assert entries(database)["demo/large"].state is ItemState.DONE
        assert "demo/huge" not in entries(database)
        assert judge(database).passed


def world_id(database: Database, name: str) -> int:
    with database.transaction() as connection:
        (row,) = [row for row in REPOSITORIES.read(connection, MONTH) if row.full_name == name]
    return row.id


@pytest.mark.slow
def test_a_vanished_repository_fails_by_name_and_the_month_continues(run, world, database):
    world.facts["demo/large"] = {"is_gone": True}
    assert run()["items_done"] == 2
    entry = entries(database)["demo/large"]
    assert (entry.state, entry.reason) == (ItemState.FAILED, "vanished")
    assert judge(database).passed


@pytest.mark.slow
def test_an_archived_repository_is_rejected_with_its_stored_rows(run, world, database):
    run()
    world.facts["demo/large"] = {"is_archived": True, "archived_at": "2026-01-01T00:00:00Z"}
    assert run(force=True)["dagster/row_count"] == 2
    assert entries(database)["demo/large"].state is ItemState.REJECTED
    assert not [item for item in entries(database) if item.startswith("demo/large#")]
    assert judge(database).passed


@pytest.mark.slow
def test_rows_lost_from_the_table_shut_the_gate(run, database):
    run()
    with database.transaction() as connection:
        columns = MERGED_PULL_REQUESTS.table.c
        connection.execute(MERGED_PULL_REQUESTS.table.delete().where(columns.number == 5))
    verdict = judge(database)
    assert not verdict.passed
    assert verdict.offenders == ("demo/large: 5 of 5, 4 in the table",)


def ask_witness(database: Database) -> CheckFinding:
    month = JudgedMonth(database, Stage.PULL_REQUESTS, MONTH, "run")
    return mirror_knows_no_more.judge(month, default_resources()["mirrors"])


@pytest.mark.slow
def test_mirrors_confirm_what_github_found_even_without_pull_requests(run, database):
    run()
    verdict = ask_witness(database)
    assert verdict.passed
    # the first merge of each is too near to the window's beginning to be sure
    assert verdict.figures == {"shown": 4 + 1, "unseen": 0, "unread": 0}


@pytest.mark.slow
def test_a_merge_that_the_search_index_lacks_is_named_by_the_check(run, world, database):
    # to GitHub's search the repository has merged nothing in the month
    later = [{"number": number, "merged_at": "2026-03-02T00:00:00Z"} for number in range(1, 6)]
    world.facts["demo/large"] = {"pull_requests": later}
    assert run()["dagster/row_count"] == 2
    assert judge(database).passed, "stored is what GitHub counts"
    verdict = ask_witness(database)
    assert not verdict.passed
    assert verdict.summary == "4 of 5 merges that the mirrors show were not found by GitHub's search"
    assert [offender.partition(" (")[0] for offender in verdict.offenders] == [
        f"demo/large#{number}" for number in range(2, 6)
    ]


@pytest.mark.slow
def test_a_merge_that_only_the_repositorys_own_list_has_is_taken_in_and_named(run, world, database):
    world.facts["demo/large"] = {"pull_requests": [{"number": 3, "is_unindexed": True}]}
    assert run()["dagster/row_count"] == 5 + 2
    assert judge(database).passed
    verdict = search_shows_all.judge(JudgedMonth(database, Stage.PULL_REQUESTS, MONTH, "run"))
    assert (verdict.passed, verdict.offenders) == (False, ("demo/large#3",))
    assert ask_witness(database).passed


@pytest.mark.slow
def test_a_merge_that_another_month_holds_is_not_missing(run, world, database):
    run()
    with database.transaction() as connection:
        table = MERGED_PULL_REQUESTS.table
        connection.execute(table.update().where(table.c.number == 5).values(month="2026-03"))
    assert ask_witness(database).passed


@pytest.mark.slow
def test_a_mirror_that_cannot_be_asked_is_no_pass(run, world, database, monkeypatch):
    run()
    shutil.rmtree(world.folder / "demo/empty.git")
    (world.folder / "demo/empty.git").mkdir()
    monkeypatch.setenv("FC_MIRRORS_DIR", str(world.folder.parent / "other-mirrors"))
    verdict = ask_witness(database)
    assert (verdict.passed, verdict.figures["unread"]) == (False, 1)
    assert verdict.offenders[0].startswith("demo/empty: ")


@pytest.mark.slow
def test_a_mirror_with_unreadable_history_fails_without_hiding_others(run, world, database, tmp_path):
    run()
    assert ask_witness(database).passed
    (tmp_path / "home" / "mirrors" / "demo/empty.git" / "HEAD").write_text("ref: refs/heads/../../no\n")
    verdict = ask_witness(database)
    assert (verdict.passed, verdict.figures["shown"], verdict.figures["unread"]) == (False, 5, 1)


@pytest.mark.slow
def test_a_host_that_is_gone_is_asked_once(run, world, database, monkeypatch):
    run()
    monkeypatch.setenv("FC_MIRRORS_DIR", str(world.folder.parent / "other-mirrors"))
    monkeypatch.setenv("GITHUB_CLONE_URL", (world.folder.parent / "nowhere").as_uri())
    verdict = ask_witness(database)
    assert (verdict.passed, verdict.figures) == (False, {"shown": 0, "unseen": 0, "unread": 3})


@pytest.mark.slow
def test_a_faster_commit_of_a_dashboard_enters_and_leaves_with_its_step(run, world, database):
    pushed = BareRepository(world.folder / "demo/small.git")
    before = pushed.git("rev-parse", "main")
    mark = pushed.commit("Cache lookups", FEBRUARY.start + timedelta(days=9), before, files={"cache.py": "cache = {}"})
    after = pushed.write()[mark]
    step = {"before_hash": before, "after_hash": after, "improved": 2, "regressed": 0, "steps": 2, "median_ratio": 0.5}
    found = pl.DataFrame([{**step, "before_revision": 1, "after_revision": 2}], schema=NAMED_COMMITS)

    def keep(commits: pl.DataFrame) -> None:
        with database.transaction() as connection:
            kept = Breakpoints(pl.DataFrame(schema=NAMED_STEPS), commits)
            save_breakpoints(connection, "board", Source.PUBLISHED, Method.SEEDED, kept)

    plain = run()
    assert plain["from_dashboards"] == 0
    with database.transaction() as connection:
        site = {column.name: 0 if column.name.endswith(("expected", "read")) else "" for column in DASHBOARDS.columns}
        named = {"dashboard": "board", "source": "published", "repository": "demo/small", "benchmarks": []}
        upsert(connection, DASHBOARDS, [{**site, **named, "read_at": FEBRUARY.start}])
    keep(found)
    run(dashboards=["board"], dry_run=True)
    with database.transaction() as connection:
        assert DASHBOARD_CANDIDATES.read(connection, MONTH) == []
    entered = run(dashboards=["board"])
    item = f"demo/small#{stand_in_number(after)}"
    assert (entered["from_dashboards"], entered["dagster/row_count"]) == (1, 8)
    assert entries(database)[item].state is ItemState.DONE
    # the windows are unchanged, and a run without the dashboard keeps what entered
    assert judge(database).passed
    assert entered["checksum"] == plain["checksum"]
    assert run(force=True)["from_dashboards"] == 1
    with database.transaction() as connection:
        (row,) = [row for row in iterate_done(connection, MONTH, Stage.PULL_REQUESTS) if row.item == item]
    assert (row.facts.source, row.change.base_sha) == (CandidateSource.DASHBOARD, before)

    with database.transaction() as connection:
        DASHBOARD_CANDIDATES.replace_month(connection, MONTH, [])
    assert run(dry_run=True)["from_dashboards"] == 0
    with database.transaction() as connection:
        assert row.facts in MERGED_PULL_REQUESTS.read(connection, MONTH), "a dry run drops nothing"

    keep(found.clear())
    left = run(dashboards=["board"])
    assert (left["from_dashboards"], left["dagster/row_count"], left["checksum"]) == (0, 7, plain["checksum"])
    assert item not in entries(database)
