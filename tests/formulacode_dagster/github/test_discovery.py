from __future__ import annotations

import asyncio
import json
import re

import httpx
import pytest

from formulacode_dagster.github.discovery import discover_repositories
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import RepositoryState

FEBRUARY = Month.parse("2026-02")


class FakeSearch:
    """Code search over (repository, path, size), and metadata by id."""

    def __init__(self, files: list[tuple[str, str, int]], **metadata: dict | None) -> None:
        self.files = files
        self.metadata = metadata
        self.queries: list[str] = []
        self.hidden = 0
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.path == "/search/code":
            return self.code(dict(request.url.params))
        body = json.loads(request.content)
        if "repository(" in body["query"]:
            return self.by_name("{owner}/{name}".format(**body["variables"]))
        return self.by_id(body["variables"]["ids"])

    def code(self, params: dict[str, str]) -> httpx.Response:
        self.queries.append(params["q"])
        match = re.search(r"size:(\d+)\.\.(\d+)", params["q"])
        low, high = (int(match[1]), int(match[2])) if match else (0, 10**9)
        found = [file for file in self.files if low <= file[2] <= high]
        start = (int(params["page"]) - 1) * 100
        items = [
            {"name": path.rpartition("/")[2], "path": path, "repository": {"node_id": f"R_{name}", "full_name": name}}
            for name, path, _ in found[:1000][start : start + 100]
        ]
        answer = {"total_count": len(found) + self.hidden, "incomplete_results": False, "items": items}
        return httpx.Response(200, json=answer)

    def node(self, name: str) -> dict | None:
        known = self.metadata.get(name.replace("/", "_"), {})
        return None if known is None else self.default(name) | known

    @staticmethod
    def default(name: str) -> dict:
        return {
            "databaseId": abs(hash(name)) % 10**9,
            "id": f"R_{name}",
            "nameWithOwner": name,
            "isFork": False,
            "isArchived": False,
            "isEmpty": False,
            "isPrivate": False,
            "stargazerCount": 600,
            "description": None,
            "primaryLanguage": {"name": "Python"},
            "defaultBranchRef": {"name": "main"},
        }

    def by_name(self, name: str) -> httpx.Response:
        node = self.node(name)
        missing = {"type": "NOT_FOUND", "path": ["repository"], "message": f"no {name}"}
        return httpx.Response(200, json={"data": {"repository": node}, "errors": [] if node else [missing]})

    def by_id(self, ids: list[str]) -> httpx.Response:
        nodes = [self.node(node_id.removeprefix("R_")) for node_id in ids]
        errors = [
            {"type": "NOT_FOUND", "path": ["nodes", index], "message": "gone"}
            for index, node in enumerate(nodes)
            if node is None
        ]
        return httpx.Response(200, json={"data": {"nodes": nodes}, "errors": errors})


def discover(connect, fake, **more):
    async def inside():
        async with connect(fake) as client:
            return await discover_repositories(client, FEBRUARY, **more)

    return asyncio.run(inside())


def test_repositories_are_found_by_their_configuration_with_metadata(connect):
    fake = FakeSearch(
        [("b/two", "x/asv.conf.json", 1), ("a/one", "asv.conf.json", 1), ("a/one", "deep/asv.conf.json", 1)]
    )
    one, two = discover(connect, fake).repositories
    assert (one.full_name, one.config_path, one.default_branch, one.stars) == ("a/one", "asv.conf.json", "main", 600)
    assert (two.full_name, two.config_path, two.state) == ("b/two", "x/asv.conf.json", RepositoryState.ACTIVE)


def test_only_the_exact_file_name_counts(connect):
    fake = FakeSearch([("a/one", "asv.conf.json", 1), ("b/two", "asv.conf.json.in", 1)])
    assert [row.full_name for row in discover(connect, fake).repositories] == ["a/one"]


def test_states_are_told_apart(connect):
    names = ["a/fork", "a/archived", "a/empty", "a/private", "a/gone", "a/fine"]
    fake = FakeSearch(
        [(name, "asv.conf.json", 1) for name in names],
        a_fork={"isFork": True, "isArchived": True},
        a_archived={"isArchived": True},
        a_empty={"isEmpty": True, "defaultBranchRef": None},
        a_private={"isPrivate": True},
        a_gone=None,
    )
    states = {row.full_name: row.state.value for row in discover(connect, fake).repositories}
    assert states == {
        "a/fork": "fork",
        "a/archived": "archived",
        "a/empty": "empty",
        "a/private": "private",
        "a/gone": "vanished",
        "a/fine": "active",
    }


def test_a_renamed_repository_keeps_its_old_name_as_an_alias(connect):
    fake = FakeSearch([("a/old", "asv.conf.json", 1)], a_old={"nameWithOwner": "b/new"})
    (row,) = discover(connect, fake).repositories
    assert (row.full_name, row.aliases) == ("b/new", ("a/old",))


def test_more_files_than_search_shows_are_found_by_splitting_on_size(connect):
    files = [(f"o/r{number}", "asv.conf.json", 200 + number % 977) for number in range(2500)]
    fake = FakeSearch(files)
    assert len(discover(connect, fake).repositories) == 2500
    assert any("size:" in query for query in fake.queries)


def test_a_search_that_shows_less_than_it_counts_is_never_taken_for_all(connect):
    fake = FakeSearch([("a/one", "asv.conf.json", 1)])
    fake.hidden = 1
    with pytest.raises(ItemFailure, match="1 of 2 files") as caught:
        discover(connect, fake)
    assert caught.value.kind == "incomplete"


def test_metadata_comes_a_hundred_at_a_time(connect):
    fake = FakeSearch([(f"o/r{number}", "asv.conf.json", 1) for number in range(250)])
    discover(connect, fake)
    assert sum(request.url.path == "/graphql" for request in fake.requests) == 3


def test_stars_are_a_condition_that_named_repositories_are_free_of(connect):
    fake = FakeSearch(
        [("a/small", "asv.conf.json", 1), ("a/big", "asv.conf.json", 1), ("a/wanted", "asv.conf.json", 1)],
        a_small={"stargazerCount": 3},
        a_wanted={"stargazerCount": 3},
    )
    found = discover(connect, fake, minimum_stars=500, extra=["a/wanted", "c/extra"])
    assert [row.full_name for row in found.repositories] == ["a/big", "a/wanted", "c/extra"]
    assert [row.full_name for row in found.few_stars] == ["a/small"]


def test_a_named_repository_that_does_not_exist_is_told_as_vanished(connect):
    fake = FakeSearch([], a_gone=None)
    (row,) = discover(connect, fake, extra=["a/gone"]).repositories
    assert row.state is RepositoryState.VANISHED


def test_metadata_that_github_fails_to_load_is_not_a_vanished_repository(connect):
    fake = FakeSearch([("a/one", "asv.conf.json", 1)])
    fake.by_id = lambda _: httpx.Response(
        200, json={"data": {"nodes": [None]}, "errors": [{"message": "Something went wrong", "path": ["nodes", 0]}]}
    )
    with pytest.raises(ItemFailure, match="Something went wrong"):
        discover(connect, fake)
