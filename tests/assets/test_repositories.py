"""The asset over real HTTP and a real Postgres: what is tracked, why the rest is not, and what the list changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets.checks import JudgedMonth
from assets.pull_requests import pull_requests
from assets.repositories import repositories
from assets.stage_asset import StageAsset
from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.intake import ListedRepository, ListVerdict
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, INTAKE_COUNTS, MERGED_PULL_REQUESTS, REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.listed import put_listed, remove_listed
from formulacode_dagster.operating.store.repositories import recorded_github
from formulacode_dagster.sources.intake.repositories.tracked import DISCOVERY
from resources.defaults import default_resources
from tests.support.gates import open_gates
from tests.support.github import FEBRUARY, World
from tests.support.month import enter

MONTH = FEBRUARY.key


def keep_suite(world: World, name: str, merged: int = 0, **facts: Any) -> None:
    """*name* with an asv configuration, *merged* pull requests of the month on top, and *facts* about it."""
    moments = [FEBRUARY.start + timedelta(hours=number) for number in range(1, merged + 1)]
    world.merge(name, moments, first="asv.conf.json", **facts)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A tracked repository, and one for each reason not to be."""
    world = World(tmp_path / "served")
    keep_suite(world, "a/fast", 3, stars=900)
    keep_suite(world, "a/small", 2, stars=120)
    keep_suite(world, "a/tiny", stars=7)
    keep_suite(world, "a/site", stars=800, language="HTML")
    keep_suite(world, "b/fork", is_fork=True)
    keep_suite(world, "b/shut", is_archived=True, archived_at="2025-03-04T05:06:07Z")
    keep_suite(world, "b/shut-later", 1, is_archived=True, archived_at="2026-03-04T05:06:07Z")
    keep_suite(world, "b/gone", is_gone=True)
    return world


@pytest.fixture
def run(
    database: Database,
    database_url: str,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dagster_instance: dg.DagsterInstance,
) -> Any:
    """Materialize the asset of the month; returns the metadata."""
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("GH_TOKENS", "one")
    monkeypatch.setenv("FC_FAILURE_BUDGET", "0.5")  # of eight repositories one or two are gone
    monkeypatch.setenv("GITHUB_CLONE_URL", world.folder.as_uri())

    def materialize(stage: StageAsset = repositories, **config: Any) -> dict[str, Any]:
        asset = stage.definition
        with world.serve() as url:
            monkeypatch.setenv("GITHUB_API_URL", url)
            known = default_resources()
            done = dg.materialize(
                [asset],
                partition_key=MONTH,
                instance=dagster_instance,
                resources={name: known[name] for name in asset.required_resource_keys if name in known},
                run_config={"ops": {asset.op.name: {"config": config}}},
            )
        (event,) = done.asset_materializations_for_node(asset.op.name)
        return {name: value.value for name, value in event.metadata.items()}

    return materialize


@pytest.fixture
def decide(database: Database) -> Callable[..., None]:
    """Put a repository on the list, or take it off."""

    def put(name: str, verdict: ListVerdict | None, reason: str = "because") -> None:
        with database.transaction() as connection:
            if verdict is None:
                assert remove_listed(connection, name)
            else:
                listed = ListedRepository(full_name=name, verdict=verdict, reason=reason, listed_at=datetime.now(UTC))
                put_listed(connection, listed)

    return put


def entries(database: Database, stage: Stage = Stage.REPOSITORIES) -> dict[str, LedgerEntry]:
    with database.transaction() as connection:
        return {entry.item: entry for entry in ledger.entries_of(connection, MONTH, stage)}


def ended(database: Database) -> dict[str, str]:
    return {
        item: f"{entry.state.value} {entry.reason}: {entry.detail}".replace(" :", ":")
        for item, entry in entries(database).items()
        if item != DISCOVERY
    }


def taken_in(database: Database) -> dict[str, int]:
    with database.transaction() as connection:
        rows = MERGED_PULL_REQUESTS.read(connection, MONTH)
        assert len(CHANGES.read(connection, MONTH)) == len(rows)
        return {
            count.repository: sum(row.repository_id == count.repository_id for row in rows)
            for count in INTAKE_COUNTS.read(connection, MONTH)
        }


def judge(database: Database) -> list[CheckVerdict]:
    month = JudgedMonth(database, Stage.REPOSITORIES, MONTH, "run")
    return [check.verdict(month) for check in repositories.checks]


@pytest.mark.slow
def test_every_repository_is_tracked_or_told_why_not(run, database):
    metadata = run()
    assert ended(database) == {
        "a/fast": "done: asv configuration at asv.conf.json",
        "a/small": "rejected few_stars: 120 < 500",
        "a/tiny": "rejected few_stars: 7 < 500",
        "a/site": "rejected language: HTML is none of Python, Cython, C, C++, Cuda, Fortran, Rust, Jupyter Notebook",
        "b/fork": "rejected fork: a fork of another repository",
        "b/shut": "rejected archived: on 2025-03-04, before 2026-02",
        "b/shut-later": "done: asv configuration at asv.conf.json; archived on 2026-03-04",
        "b/gone": "failed vanished: b/gone is not on GitHub, or not any more",
    }
    assert (metadata["dagster/row_count"], metadata["tracked"]) == (8, 2)
    table = [record.data for record in metadata["not_tracked"].records]
    assert table[0] == {"reason": "few_stars", "repositories": 2, "such as": "a/small: 120 < 500; a/tiny: 7 < 500"}
    assert [row["reason"] for row in table] == ["few_stars", "archived", "fork", "language", "vanished"]
    assert metadata["requests_per_100_repositories"] == 37.5, "two searches and one look-up for eight"


@pytest.mark.slow
def test_gates_cover_tracked_and_undecided_repositories(run, database, decide, world):
    run()
    _, not_empty, resolves, _ = judge(database)
    assert not_empty.summary == "2 of 8 repositories are tracked"
    assert resolves.offenders == ("b/gone",)
    for name in ("a/fast", "b/shut-later", "b/gone"):
        decide(name, ListVerdict.DENY)
    run()
    _, not_empty, resolves, _ = judge(database)
    assert not not_empty.passed
    assert resolves.passed
    part = JudgedMonth(database, Stage.REPOSITORIES, MONTH, "run", is_part=True)
    assert next(check for check in repositories.checks if check.name == "not_empty").verdict(part).passed


@pytest.mark.slow
def test_a_second_run_asks_nobody_and_a_forced_one_leaves_equal_rows(run, database, world):
    run()
    with database.transaction() as connection:
        rows = REPOSITORIES.read(connection, MONTH)
    again = run()
    assert (world.books["total"], again["worked_in_this_run"], again["unchanged"]) == (0, 0, 9)
    assert run(force=True)["worked_in_this_run"] == 9
    with database.transaction() as connection:
        assert REPOSITORIES.read(connection, MONTH) == rows


@pytest.mark.slow
def test_the_list_decides_whatever_the_rules_say_and_touches_nothing_else(run, database, decide, world):
    run()
    before = entries(database)
    decide("A/Small", ListVerdict.ALLOW, "worth it")
    decide("b/FORK", ListVerdict.ALLOW, "the original is dead")
    decide("a/fast", ListVerdict.DENY, "asked not to")
    metadata = run()
    assert world.books["total"] == 0, "they were known already"
    after = entries(database)
    assert {item for item in after if after[item] != before[item]} == {"a/small", "b/fork", "a/fast"}
    assert metadata["worked_in_this_run"] == 3
    now = ended(database)
    assert now["a/small"] == "done: asv configuration at asv.conf.json; allowed: worth it"
    assert now["b/fork"].startswith("done")
    assert now["a/fast"] == "rejected denied: asked not to"
    decide("a/small", None)
    run()
    assert ended(database)["a/small"] == "rejected few_stars: 120 < 500"


@pytest.mark.slow
def test_a_listed_name_missed_by_code_search_is_looked_up(run, database, decide, world):
    world.merge("c/elsewhere", [FEBRUARY.start], stars=1, former_names=["c/formerly"])
    run()
    assert "c/elsewhere" not in ended(database)
    decide("c/formerly", ListVerdict.ALLOW, "its suite is in another repository")
    run()
    assert ended(database)["c/elsewhere"] == "done: allowed: its suite is in another repository"
    run()
    assert world.books["total"] == 0
    decide("c/formerly", None)
    run()
    assert "c/elsewhere" not in ended(database)


@pytest.mark.slow
def test_a_line_about_the_old_name_holds_for_the_new_one(run, database, decide, world):
    run()
    (world.folder / "a/fast.git").rename(world.folder / "a/faster.git")
    world.facts["a/faster"] = world.facts.pop("a/fast") | {"former_names": ["a/fast"]}
    decide("a/fast", ListVerdict.DENY, "asked not to")
    assert ended(database)["a/fast"].startswith("done")
    run(force=True)
    assert ended(database)["a/faster"] == "rejected denied: asked not to"
    assert "a/fast" not in ended(database)


@pytest.mark.slow
def test_a_month_keeps_items_and_task_ids_of_a_renamed_repository(run, database, decide, world):
    def standing() -> tuple[list[tuple[str, str]], dict[str, LedgerEntry]]:
        with database.transaction() as connection:
            rows = MERGED_PULL_REQUESTS.read(connection, MONTH)
        return [(row.item, row.task_id) for row in rows], entries(database, Stage.PULL_REQUESTS)

    run()
    judge(database)
    run(pull_requests)
    before = standing()
    assert ("a/fast#3", "a__fast-3") in before[0]
    with database.transaction() as connection:
        ids = {row.full_name: row.id for row in REPOSITORIES.read(connection, MONTH)}
    (world.folder / "b").mkdir(exist_ok=True)
    (world.folder / "a/fast.git").rename(world.folder / "b/faster.git")
    world.facts["b/faster"] = world.facts.pop("a/fast") | {"former_names": ["a/fast"], "id": ids["a/fast"]}
    decide("b/faster", ListVerdict.ALLOW)
    run()
    assert world.books["total"] > 0, "the new name was looked up"
    assert ended(database)["a/fast"].startswith("done")
    assert "b/faster" not in ended(database)
    with database.transaction() as connection:
        (row,) = [row for row in REPOSITORIES.read(connection, MONTH) if row.id == ids["a/fast"]]
    assert (row.full_name, row.aliases) == ("a/fast", ("b/faster",))
    judge(database)
    assert run(pull_requests)["worked_in_this_run"] == 0
    assert standing() == before
    run()
    assert world.books["total"] == 0


@pytest.mark.slow
def test_a_denied_repository_leaves_the_month_and_returns_complete(run, database, decide):
    run()
    judge(database)
    run(pull_requests)
    assert taken_in(database) == {"a/fast": 3, "b/shut-later": 1}
    decide("a/fast", ListVerdict.DENY)
    run()
    assert taken_in(database) == {"b/shut-later": 1}
    assert {item.partition("#")[0] for item in entries(database, Stage.PULL_REQUESTS)} == {"b/shut-later"}
    decide("a/fast", None)
    run()
    judge(database)
    run(pull_requests)
    assert taken_in(database) == {"a/fast": 3, "b/shut-later": 1}


@pytest.mark.slow
def test_a_repository_that_vanished_and_returned_is_taken_in(run, database, world):
    world.facts["a/fast"] |= {"is_gone": True}
    run()
    assert ended(database)["a/fast"].startswith("failed vanished")
    world.facts["a/fast"] |= {"is_gone": False}
    run(force=True)
    assert ended(database)["a/fast"].startswith("done")
    judge(database)
    run(pull_requests)
    assert taken_in(database)["a/fast"] == 3


@pytest.mark.slow
def test_a_repository_that_vanished_before_intake_is_retried_when_found(run, database, world):
    run()
    judge(database)
    world.facts["a/fast"] |= {"is_gone": True}
    run(pull_requests)
    assert entries(database, Stage.PULL_REQUESTS)["a/fast"].reason == "vanished"
    world.facts["a/fast"] |= {"is_gone": False}
    run(pull_requests)
    assert entries(database, Stage.PULL_REQUESTS)["a/fast"].state is ItemState.FAILED, "nobody has seen it since"
    run(force=True)
    judge(database)
    run(pull_requests)
    assert taken_in(database)["a/fast"] == 3


@pytest.mark.slow
def test_without_code_search_files_and_earlier_months_name_the_repositories(
    run, database, world, tmp_path, monkeypatch
):
    pl.DataFrame({"repo_name": ["a/small", "b/never"], "path": ["asv.conf.json", ""]}).write_parquet(
        tmp_path / "found.parquet"
    )
    monkeypatch.setenv("FC_DISCOVERY", f"earlier,{tmp_path / 'found.parquet'}")
    enter(database, Stage.REPOSITORIES, "a/fast", month="2026-01")
    run()
    assert "GET /search/code" not in world.books["endpoints"]
    assert sorted(ended(database)) == ["a/fast", "a/small", "b/never"]
    assert ended(database)["a/fast"].startswith("done")
    assert ended(database)["a/small"] == "rejected few_stars: 120 < 500"
    assert ended(database)["b/never"].startswith("failed vanished")
    assert run()["unchanged"] == 4, "the file is as before"
    assert world.books["total"] == 0
    (tmp_path / "found.parquet").unlink()
    monkeypatch.setenv("FC_DISCOVERY", "earlier")
    run()
    assert sorted(ended(database)) == ["a/fast"]


@pytest.mark.parametrize("stage", [repositories, pull_requests])
def test_months_of_two_githubs_are_not_mixed(
    run: Any, database: Database, monkeypatch: pytest.MonkeyPatch, stage: StageAsset
) -> None:
    run()
    before = entries(database)
    with database.transaction() as connection:
        assert recorded_github(connection) == "localhost"
    asset, known = stage.definition, default_resources()
    monkeypatch.setenv("GITHUB_API_URL", "https://api.github.com")
    open_gates(database, stage, MONTH)
    done = dg.materialize(
        [asset],
        partition_key=MONTH,
        resources={name: known[name] for name in asset.required_resource_keys if name in known},
        raise_on_error=False,
    )
    (failure,) = done.get_step_failure_events()
    said = failure.step_failure_data.user_failure_data.description
    assert said.startswith("this home has months of localhost")
    assert "Set another FC_HOME for github.com" in said
    assert entries(database) == before
