"""Discovery over real HTTP, against small repositories whose search shows few results."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import RepositoryState
from formulacode_dagster.sources.github.code_search import find_files
from formulacode_dagster.sources.github.discovery import discover_repositories
from formulacode_dagster.sources.github.search_limits import SearchLimits
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from sandbox.github import Fault, Faults, ScriptedFault, app
from sandbox.server import serving
from tests.support.git_world import BareRepository
from tests.support.github import CALM, UNLIMITED

FEBRUARY = Month.parse("2026-02")
SEARCH = "GET /search/code"
BEGIN = "2026-01-01T00:00:00Z"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "served"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Bare repositories by the files they hold, each made once."""
    folder, known = tmp_path_factory.mktemp("made"), {}

    def make(files: dict[str, int]) -> Path:
        key = tuple(files.items())
        if key not in known:
            known[key] = folder / f"{len(known)}.git"
            bare = BareRepository(known[key])
            if files:
                bare.add("Begin", BEGIN, {path: b"x" * size for path, size in files.items()})
            bare.write()
        return known[key]

    return make


@pytest.fixture
def shelve(folder, made):
    """Put a bare repository with these files, by path and size, into the folder; no files: nothing was ever pushed."""
    return lambda name, **files: shutil.copytree(made(files), folder / f"{name}.git")


@pytest.fixture
def tell(folder):
    """Write the side file: facts by repository name."""
    return lambda **facts: (folder / "sandbox.json").write_text(
        json.dumps({"repositories": {name.replace("__", "/"): known for name, known in facts.items()}})
    )


@pytest.fixture
def discover(folder, clock):
    """Result of discovery in the folder, and number of requests by endpoint."""

    def find(*wanted: str, faults: Faults | None = None, shown: int = 1_000):
        find.gaps = []

        async def inside(url: str):
            async with GitHubTransport(url, ["token"], clock=clock, pacing=CALM) as client:
                limits = SearchLimits(shown=shown)
                return await discover_repositories(client, FEBRUARY, wanted, limits, find.gaps.append)

        limits = UNLIMITED.model_copy(update={"search_cap": shown})
        with serving(app(folder, faults=faults or Faults(), limits=limits)) as url:
            try:
                return asyncio.run(inside(url))
            finally:
                find.calls = httpx.get(f"{url}/_sandbox/calls").json()["endpoints"]

    return find


CONFIG = {"asv.conf.json": 10}


def test_configurations_of_any_name_and_depth_are_found_with_metadata(shelve, tell, discover):
    shelve("a/top", **{"asv.conf.json": 10, "tools/asv/asv.conf.json": 10})
    shelve("b/deep", **{"x/y/asv.conf.json": 10, "z/asv.conf.jsonc": 10})
    shelve("c/comments", **{"asv.conf.jsonc": 10})
    shelve("d/others", **{"asv.conf.json.in": 10, "my-asv.conf.json": 10, "README": 3})
    tell(a__top={"stars": 612, "size_kb": 48_211, "language": "Cython", "description": "On top"})
    top, deep, comments = discover()
    assert [top.full_name, deep.full_name, comments.full_name] == ["a/top", "b/deep", "c/comments"]
    assert [top.config_path, deep.config_path, comments.config_path] == [
        "asv.conf.json",
        "z/asv.conf.jsonc",
        "asv.conf.jsonc",
    ]
    assert (top.stars, top.size_kb, top.language, top.description) == (612, 48_211, "Cython", "On top")
    assert (top.default_branch, top.state, top.archived_at) == ("main", RepositoryState.ACTIVE, None)


def test_a_repository_found_by_both_names_is_one(shelve, discover):
    shelve("a/both", **{"asv.conf.json": 10, "asv.conf.jsonc": 10})
    (row,) = discover()
    assert row.config_path == "asv.conf.json"
    assert discover.calls == {"GET /search/code": 2, "graphql": 1, "graphql RepositoriesById": 1}


def test_each_state_is_told_apart(shelve, tell, discover):
    names = ("fork", "archived", "private", "gone", "fine")
    for name in names:
        shelve(f"a/{name}", **CONFIG)
    shelve("a/empty")
    tell(
        a__fork={"is_fork": True},
        a__archived={"is_archived": True, "archived_at": "2024-05-06T07:08:09Z"},
        a__private={"is_private": True},
        a__gone={"is_gone": True},
    )
    rows = {row.full_name: row for row in discover("a/empty")}
    assert {name: row.state.value for name, row in rows.items()} == {
        "a/fork": "fork",
        "a/archived": "archived",
        "a/private": "private",
        "a/gone": "vanished",
        "a/empty": "empty",
        "a/fine": "active",
    }
    assert rows["a/archived"].archived_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert rows["a/gone"].id > 0, "the index knows its id"


def named(rows, *names):
    """The rows of these names, which have to be all."""
    found = {row.full_name: row for row in rows}
    assert sorted(found) == sorted(names)
    return [found[name] for name in names]


def test_wanted_names_are_looked_up_together_and_renames_are_followed(shelve, tell, discover):
    shelve("new/home", README=3)
    shelve("a/known", **CONFIG)
    tell(new__home={"former_names": ["old/house", "older/hut"]})
    rows = discover("old/house", "Older/Hut", "A/Known", "no/body", "No/Body")
    home, nobody, known = named(rows, "new/home", "No/Body", "a/known")
    assert (home.aliases, home.config_path) == (("Older/Hut", "old/house"), "")
    assert (nobody.state, nobody.id < 0) == (RepositoryState.VANISHED, True)
    assert known.aliases == ()
    assert discover.calls["graphql RepositoriesByName"] == 1


def test_a_repository_found_by_search_keeps_the_listed_name_as_alias(shelve, tell, discover):
    shelve("new/home", **CONFIG)
    tell(new__home={"former_names": ["old/house"]})
    (row,) = discover("old/house")
    assert (row.full_name, row.aliases, row.config_path) == ("new/home", ("old/house",), "asv.conf.json")


def test_what_is_no_name_is_refused(discover):
    with pytest.raises(ConfigurationError, match="nonsense"):
        discover("nonsense")


def test_vanished_repositories_do_not_hide_one_another(shelve, tell, discover):
    shelve("a/one", **CONFIG)
    shelve("a/two", **CONFIG)
    tell(a__one={"is_gone": True}, a__two={"is_gone": True})
    rows = discover("no/body", "no/where")
    assert len({row.id for row in rows}) == len(rows) == 4
    assert {row.state for row in rows} == {RepositoryState.VANISHED}


def many(shelve, sizes):
    for number, size in enumerate(sizes):
        shelve(f"o/r{number}", **{("" if number % 2 else "deep/") + "asv.conf.json": size})


@pytest.mark.slow
def test_more_files_than_search_shows_are_found_by_splitting_on_size(shelve, discover):
    many(shelve, [40 + 7 * number for number in range(16)])
    calm = discover()
    assert len(calm) == 16
    assert discover.calls[SEARCH] == 2
    assert discover(shown=5) == calm
    assert discover.calls[SEARCH] < 16


@pytest.mark.slow
def test_one_crowded_size_is_split_by_place_and_by_forks(shelve, tell, discover):
    many(shelve, [*[500] * 8, 20, 9000])
    tell(**{f"o__r{number}": {"is_fork": True} for number in (1, 3, 5)})
    calm = discover()
    assert discover(shown=4) == calm
    assert sum(row.state is RepositoryState.FORK for row in calm) == 3


@pytest.mark.slow
def test_an_indivisible_size_is_taken_partially_with_a_gap(shelve, discover):
    many(shelve, [100, *[500] * 10])
    found = discover(shown=4)
    assert all("size:500..500" in gap.query for gap in discover.gaps)
    assert [(gap.month, gap.counted, gap.found) for gap in discover.gaps] == [(FEBRUARY.key, 5, 4)] * 2
    assert len(found) == 9


@pytest.mark.parametrize("fault", [Fault.INCOMPLETE, Fault.HALF_PAGE])
def test_an_answer_that_was_cut_short_is_asked_again(shelve, discover, fault):
    many(shelve, [100, 200, 300])
    assert len(discover(faults=Faults.at(SEARCH, 1, fault))) == 3
    assert discover.calls[SEARCH] == 3


def test_a_search_that_stays_short_is_a_gap_and_what_it_shows_is_taken(shelve, discover):
    many(shelve, [100, 200, 300])
    short = Faults(scripted=(ScriptedFault(endpoint=SEARCH, times=3, fault=Fault.HALF_PAGE),))
    assert len(discover(faults=short)) == 1
    (gap,) = discover.gaps
    assert (gap.query, gap.counted, gap.found) == ("filename:asv.conf.json fork:true", 3, 1)


def test_a_search_that_times_out_is_a_gap_with_its_results_taken(shelve, discover):
    many(shelve, [100, 200, 300])
    short = Faults(scripted=(ScriptedFault(endpoint=SEARCH, times=100, fault=Fault.INCOMPLETE),))
    assert len(discover(faults=short)) == 1
    assert [(gap.query, gap.found, gap.ran_out) for gap in discover.gaps] == [
        ("filename:asv.conf.json fork:true", 1, True),
        ("filename:asv.conf.jsonc fork:true", 0, True),
    ]


@pytest.mark.slow
def test_a_slice_that_times_out_loses_no_other(shelve, discover):
    many(shelve, [100, 200, 300, 400, 500, 600])
    short = Faults(scripted=(ScriptedFault(endpoint=SEARCH, call=2, times=12, fault=Fault.INCOMPLETE),))
    found = discover(faults=short, shown=4)
    assert discover.gaps
    assert all(gap.ran_out and "size:" in gap.query for gap in discover.gaps)
    assert len(found) >= 4


@pytest.mark.parametrize("promised", [1, 40])
def test_files_that_the_count_promises_and_no_size_has_are_a_gap(connect, promised):
    sizes = [10, 20, 30, 40, 50, 60]

    def answer(request: httpx.Request) -> httpx.Response:
        query, page = request.url.params["q"], int(request.url.params["page"])
        bounds = re.search(r"size:(>=)?(\d+)(?:\.\.(\d+))?", query)
        low, high = (int(bounds[2]), int(bounds[3] or 10**9)) if bounds else (0, 10**9)
        hits = [size for size in sizes if low <= size <= high] if "jsonc" not in query else []
        items = [
            {
                "name": "asv.conf.json",
                "path": "asv.conf.json",
                "repository": {"id": size, "node_id": f"R_{size}", "full_name": f"o/r{size}"},
            }
            for size in hits[2 * (page - 1) : 2 * page]
        ]
        # only the count of all is wrong
        count = len(hits) + (0 if bounds or "jsonc" in query else promised)
        return httpx.Response(200, json={"total_count": count, "incomplete_results": False, "items": items})

    async def inside():
        async with connect(answer) as client:
            return await find_files(client, "asv.conf.json", lambda _: None, SearchLimits(shown=3, page=2))

    hits, gaps = asyncio.run(inside())
    assert [hit.repository_id for hit in hits] == sizes
    assert [(gap.counted, gap.found) for gap in gaps] == [(6 + promised, 6)]


def test_metadata_that_github_fails_to_load_is_not_a_vanished_repository(shelve, discover):
    many(shelve, [100, 200])
    assert len(discover(faults=Faults.at("graphql RepositoriesById", 1, Fault.NULL_NODE))) == 2
    never = Faults(scripted=(ScriptedFault(endpoint="graphql RepositoriesById", times=100, fault=Fault.NULL_NODE),))
    with pytest.raises(ItemFailure, match=r"has no data on 1 repositories, .*Something went wrong") as caught:
        discover(faults=never)
    assert caught.value.kind == "incomplete"


def test_two_discoveries_give_equal_rows_in_equal_order(shelve, discover):
    many(shelve, range(10, 14))
    assert discover("no/body") == discover("no/body")


class Index:
    """Code search and metadata by hand, for what the sandbox does not do: stale entries of the index."""

    def __init__(self, hits, nodes, errors=(), forbidden=()):
        self.hits, self.nodes, self.errors, self.forbidden = hits, nodes, list(errors), forbidden
        self.asked = Counter()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked[request.url.path] += 1
        if request.url.path == "/search/code":
            start = 100 * (int(request.url.params["page"]) - 1)
            found = self.hits if "jsonc" not in request.url.params["q"] else []
            items = [
                {"name": "asv.conf.json", "path": path, "repository": {"id": id_, "node_id": node, "full_name": name}}
                for id_, node, name, path in found[start : start + 100]
            ]
            answer = {"total_count": len(found), "incomplete_results": False, "items": items}
            return httpx.Response(200, json=answer)
        ids = json.loads(request.content)["variables"]["ids"]
        nodes = [self.nodes.get(node) for node in ids]
        gone = [
            {"type": "NOT_FOUND", "path": ["nodes", ids.index(node)], "message": "gone"}
            for node in ids
            if node not in self.nodes
        ]
        shut = [
            {"type": "FORBIDDEN", "path": ["nodes", ids.index(node)], "message": "Resource protected by SAML"}
            for node in ids
            if node in self.forbidden
        ]
        return httpx.Response(200, json={"data": {"nodes": nodes}, "errors": [*gone, *shut, *self.errors]})


def node(id_: int, name: str) -> dict:
    flags = dict.fromkeys(("isFork", "isArchived", "isEmpty", "isPrivate"), False)
    return {"databaseId": id_, "id": f"R_{id_}", "nameWithOwner": name, "stargazerCount": 1, **flags}


def asked(connect, index):
    async def inside():
        async with connect(index) as client:
            return await discover_repositories(client, FEBRUARY)

    return asyncio.run(inside())


def test_an_old_and_a_new_node_id_of_one_repository_are_one_row(connect):
    hits = [(1, "R_1", "a/new", "deep/asv.conf.json"), (1, "MDEw", "a/old", "asv.conf.json")]
    (row,) = asked(connect, Index(hits, {"R_1": node(1, "a/new"), "MDEw": node(1, "a/new")}))
    assert (row.full_name, row.aliases, row.config_path) == ("a/new", ("a/old",), "asv.conf.json")


def test_a_repository_whose_name_another_one_took_is_not_told_as_vanished(connect):
    hits = [(1, "R_1", "a/name", "asv.conf.json"), (2, "R_2", "a/name", "asv.conf.json")]
    (row,) = asked(connect, Index(hits, {"R_2": node(2, "a/name")}))
    assert (row.id, row.state) == (2, RepositoryState.ACTIVE)


def test_a_forbidden_repository_is_private_and_hides_no_other(connect):
    hits = [(1, "R_1", "a/fine", "asv.conf.json"), (2, "R_2", "b/saml", "asv.conf.json")]
    rows = asked(connect, Index(hits, {"R_1": node(1, "a/fine"), "R_2": None}, forbidden=["R_2"]))
    assert [(row.full_name, row.id, row.state.value) for row in rows] == [
        ("a/fine", 1, "active"),
        ("b/saml", 2, "private"),
    ]


def test_metadata_comes_a_hundred_at_a_time_and_paged_hits_are_all_taken(connect):
    hits = [(number, f"R_{number}", f"o/r{number}", "asv.conf.json") for number in range(250)]
    index = Index(hits, {f"R_{number}": node(number, f"o/r{number}") for number in range(250)})
    assert len(asked(connect, index)) == 250
    assert index.asked == {"/search/code": 4, "/graphql": 3}


@pytest.mark.parametrize("status", [403, 404])
def test_code_search_that_is_switched_off_names_the_setting_for_another_source(connect, status):
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"message": "Code search is not available"})

    with pytest.raises(ItemFailure, match="FC_DISCOVERY") as caught:
        asked(connect, answer)
    assert "Code search is not available" in str(caught.value)


def test_repositories_from_elsewhere_are_looked_up_with_the_path_that_is_known(connect):
    def answer(request: httpx.Request) -> httpx.Response:
        variables = json.loads(request.content)["variables"]
        assert (variables["owner0"], variables["name0"]) == ("a", "fast")
        return httpx.Response(200, json={"data": {"r0": node(1, "a/fast")}})

    async def inside():
        async with connect(answer) as client:
            candidates = {"a/fast": "deep/asv.conf.json"}
            return await discover_repositories(client, FEBRUARY, candidates=candidates, search_code=False)

    (row,) = asyncio.run(inside())
    assert (row.full_name, row.config_path, row.state.value) == ("a/fast", "deep/asv.conf.json", "active")
