"""A month taken in without GitHub, over a real Postgres; and the same month asked of GitHub before or after."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.pull_requests import pull_requests
from assets.repositories import repositories
from assets.stage_asset import StageAsset
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, INTAKE_COUNTS, MERGED_PULL_REQUESTS, REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import items_by_key
from formulacode_dagster.operating.store.windows import checksum_of_month
from formulacode_dagster.sources.github.checks import window_and_shas_valid
from formulacode_dagster.sources.offline.export import export_month
from formulacode_dagster.sources.offline.identity import derived_id
from resources.defaults import default_resources
from tests.assets.test_repositories import judge, keep_suite
from tests.support.github import FEBRUARY, World

MONTH = FEBRUARY.key
NAME = "a/fast"
TakeIn = Callable[..., list[dict[str, Any]]]
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "served")
    keep_suite(world, NAME, 3, stars=900)
    world.merge("a/none", [FEBRUARY.start + timedelta(hours=1)])
    return world


@pytest.fixture
def settings(database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    for name in ("GH_TOKENS", "GITHUB_CLONE_URL", "FC_MIRRORS_DIR", "FC_MINIMUM_STARS", "FC_LANGUAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_API_URL", NOBODY)


@pytest.fixture
def offline(
    settings: None, database: Database, dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> TakeIn:
    """Take the month in from a path; the metadata of both assets. Connections to anything but Postgres fail."""
    before = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> Any:
        assert self.family == socket.AF_UNIX, f"a connection to {address}"
        return before(self, address)

    def materialize(source: Path) -> list[dict[str, Any]]:
        with monkeypatch.context() as patched:
            patched.setenv("FC_OFFLINE_SOURCE", str(source))
            patched.setattr(socket.socket, "connect", connect)
            return _both(database, dagster_instance)

    return materialize


@pytest.fixture
def online(
    settings: None,
    database: Database,
    dagster_instance: dg.DagsterInstance,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> TakeIn:
    """Ask the sandbox GitHub, for whom the same repository has an id of its own."""

    def materialize() -> list[dict[str, Any]]:
        world.facts = {NAME: {"stars": 900}}
        with world.serve() as url, monkeypatch.context() as patched:
            patched.setenv("GITHUB_API_URL", url)
            patched.setenv("GITHUB_CLONE_URL", world.folder.as_uri())
            patched.setenv("GH_TOKENS", "one")
            try:
                return _both(database, dagster_instance)
            finally:
                (world.folder / "sandbox.json").unlink()

    return materialize


def _both(database: Database, instance: dg.DagsterInstance) -> list[dict[str, Any]]:
    found = _materialize(repositories, instance)
    assert all(verdict.passed for verdict in judge(database))
    return [found, _materialize(pull_requests, instance)]


def _materialize(stage: StageAsset, instance: dg.DagsterInstance) -> dict[str, Any]:
    asset, known = stage.definition, default_resources()
    done = dg.materialize(
        [asset],
        partition_key=MONTH,
        instance=instance,
        resources={name: known[name] for name in asset.required_resource_keys if name in known},
    )
    (event,) = done.asset_materializations_for_node(asset.op.name)
    return {name: value.value for name, value in event.metadata.items()}


def held(database: Database) -> dict[tuple[int, int], str]:
    with database.transaction() as connection:
        return items_by_key(connection, MONTH)


@pytest.mark.slow
def test_a_month_of_mirrors_needs_no_token_no_network_and_no_stars(world, offline, database):
    found, taken = offline(world.folder)
    assert (found["dagster/row_count"], found["tracked"]) == (1, 1)
    assert (taken["dagster/row_count"], taken["items_done"], taken["items_failed"]) == (3, 3, 0)
    with database.transaction() as connection:
        (row,) = REPOSITORIES.read(connection, MONTH)
        (count,) = INTAKE_COUNTS.read(connection, MONTH)
        entries = ledger.entries_of(connection, MONTH, Stage.PULL_REQUESTS)
        facts, changes = MERGED_PULL_REQUESTS.read(connection, MONTH), CHANGES.read(connection, MONTH)
    assert (row.id, row.config_path) == (derived_id(NAME), "asv.conf.json")
    assert (count.reported, count.stored) == (3, 3)
    assert {entry.state for entry in entries} == {ItemState.DONE}
    # the branches are gone, and nothing is made up in their place
    assert {fact.head_sha for fact in facts} == {""}
    rows = [PullRequest(facts=fact, change=change) for fact, change in zip(facts, changes, strict=True)]
    assert window_and_shas_valid(MONTH, rows).passed


@pytest.mark.slow
def test_it_is_read_again_only_when_it_changed(world, offline):
    offline(world.folder)
    again = offline(world.folder)
    assert [run["worked_in_this_run"] for run in again] == [0, 0]
    keep_suite(world, "a/new", 2)
    found, taken = offline(world.folder)
    assert (found["dagster/row_count"], taken["dagster/row_count"]) == (2, 5)
    # the windows of both, and the changes of the new one
    assert taken["worked_in_this_run"] == 4


@pytest.mark.slow
def test_a_month_of_files_takes_its_commits_from_the_mirrors(world, offline, tmp_path, monkeypatch):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "pull_requests.csv").write_text(
        "repository,number,title,merged_at\n"
        f"{NAME},1,Told by the file,2026-02-01T01:00:00Z\n{NAME},99,Of no commit,2026-02-01T01:00:00Z\n"
    )
    monkeypatch.setenv("GITHUB_CLONE_URL", world.folder.as_uri())
    _, taken = offline(folder)
    assert (taken["items_done"], taken["items_failed"]) == (1, 1)
    (failed,) = taken["failures"].records if hasattr(taken["failures"], "records") else taken["failures"]
    assert (failed.data["item"], failed.data["kind"]) == (f"{NAME}#99", "commit_missing")


@pytest.mark.slow
def test_offline_first_and_github_later_holds_each_pull_request_once(world, offline, online, database):
    offline(world.folder)
    before = held(database)
    assert {key[0] for key in before} == {derived_id(NAME)}
    _, taken = online()
    after = held(database)
    assert sorted(after.values()) == sorted(before.values())
    assert all(repository_id > 0 for repository_id, _ in after)
    assert taken["items_done"] == 3


@pytest.mark.slow
def test_github_first_and_offline_later_keeps_the_ids(world, offline, online, database):
    online()
    before = held(database)
    _, taken = offline(world.folder)
    assert held(database) == before
    assert taken["rows_added"] == taken["rows_removed"] == 0


@pytest.mark.slow
def test_an_exported_month_taken_in_elsewhere_is_the_same(world, offline, online, database, tmp_path, monkeypatch):
    online()
    with database.transaction() as connection:
        before = checksum_of_month(connection, MONTH)
        export_month(connection, FEBRUARY, tmp_path / "out")
    monkeypatch.setenv("GITHUB_CLONE_URL", world.folder.as_uri())
    _, taken = offline(tmp_path / "out")
    assert taken["checksum"] == before
    assert (taken["rows_added"], taken["rows_changed"], taken["rows_removed"]) == (0, 0, 0)


def test_a_file_that_is_wrong_stops_the_stage_with_all_that_is_wrong(settings, dagster_instance, tmp_path, monkeypatch):
    path = tmp_path / "repositories.csv"
    path.write_text("full_name,stars\nengine,1\na/b,many\n")
    monkeypatch.setenv("FC_OFFLINE_SOURCE", str(path))
    with pytest.raises(dg.Failure) as caught:
        _materialize(repositories, dagster_instance)
    said = caught.value.description or ""
    assert "repositories.csv, line 2, full_name: is 'engine': not owner/name" in said
    assert "repositories.csv, line 3, stars: is 'many': not a whole number" in said
    assert not caught.value.allow_retries
