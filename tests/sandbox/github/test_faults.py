"""Faults on purpose, over a real connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from sandbox.github import Fault, Faults, ScriptedFault, app
from sandbox.server import serving
from tests.support.github import UNLIMITED

SEARCH = {
    "query": """query Merged { search(query: "is:pr", type: ISSUE, first: 9) {
    issueCount pageInfo { hasNextPage } nodes { ... on PullRequest { number } } } }"""
}
PULLS = "/repos/ada/engine/pulls?state=all"


@contextmanager
def served(folder, faults: Faults) -> Iterator[httpx.Client]:
    with (
        serving(app(folder, faults=faults, limits=UNLIMITED)) as url,
        httpx.Client(base_url=url, headers={"authorization": "bearer one"}, timeout=5) as http,
    ):
        yield http


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault.BAD_GATEWAY, 502),
        (Fault.UNAVAILABLE, 503),
        (Fault.PRIMARY_LIMIT, 403),
        (Fault.SECONDARY_LIMIT, 403),
        (Fault.UNAUTHORIZED, 401),
        (Fault.GONE, 404),
        (Fault.TIMED_OUT, 504),
    ],
)
def test_a_rest_call_is_answered_by_another_status_once(small, folder, fault, status):
    with served(folder, Faults.at("GET /repos/{owner}/{repo}/pulls", 2, fault)) as http:
        assert [http.get(PULLS).status_code for _ in range(3)] == [200, status, 200]
        books = http.get("/_sandbox/calls").json()
    assert (books["faults"], books["limit_hits"]) == ({fault: 1}, {})


@pytest.mark.parametrize(
    ("fault", "kind"), [(Fault.PRIMARY_LIMIT, "RATE_LIMIT"), (Fault.GONE, "NOT_FOUND"), (Fault.TIMED_OUT, None)]
)
def test_a_graphql_call_fails_with_status_200(small, folder, fault, kind):
    with served(folder, Faults.at("graphql Merged", 1, fault)) as http:
        bad, good = http.post("/graphql", json=SEARCH), http.post("/graphql", json=SEARCH)
    assert bad.status_code == good.status_code == 200
    assert bad.json().get("data") is None
    assert bad.json()["errors"][0].get("type") == kind
    assert "errors" not in good.json()


def test_limits_that_are_feigned_look_like_real_ones(small, folder):
    scripted = (
        ScriptedFault(endpoint="graphql", call=1, fault=Fault.PRIMARY_LIMIT),
        ScriptedFault(endpoint="graphql", call=2, fault=Fault.SECONDARY_LIMIT),
    )
    with served(folder, Faults(scripted=scripted)) as http:
        primary, secondary = http.post("/graphql", json=SEARCH), http.post("/graphql", json=SEARCH)
    assert (primary.headers["x-ratelimit-remaining"], "retry-after" in primary.headers) == ("0", False)
    assert (secondary.status_code, secondary.headers["retry-after"]) == (403, "60")


def test_a_truncated_body_arrives_whole_and_is_no_json(small, folder):
    with served(folder, Faults.at("graphql", 1, Fault.TRUNCATED)) as http:
        answer = http.post("/graphql", json=SEARCH)
    assert answer.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        answer.json()


@pytest.mark.parametrize("fault", [Fault.DROPPED, Fault.RESET])
def test_a_connection_breaks_in_the_middle(small, folder, fault):
    with served(folder, Faults.at("graphql", 1, fault)) as http:
        with pytest.raises(httpx.RemoteProtocolError):
            http.post("/graphql", json=SEARCH)
        assert http.post("/graphql", json=SEARCH).json()["data"]["search"]["issueCount"] == 4


def test_half_a_page_claims_to_be_whole(small, folder):
    scripted = tuple(ScriptedFault(endpoint=name, fault=Fault.HALF_PAGE) for name in ("graphql", "GET /search/code"))
    with served(folder, Faults(scripted=scripted)) as http:
        page = http.post("/graphql", json=SEARCH).json()["data"]["search"]
        found = http.get("/search/code", params={"q": "filename:txt"}).json()
    assert (page["issueCount"], len(page["nodes"]), page["pageInfo"]) == (4, 2, {"hasNextPage": False})
    assert len(found["items"]) == found["total_count"] // 2 > 0


def test_a_node_fails_beside_the_others(small, folder):
    with served(folder, Faults.at("graphql", 1, Fault.NULL_NODE)) as http:
        answer = http.post("/graphql", json=SEARCH).json()
    assert answer["data"]["search"]["nodes"][0] is None
    assert answer["data"]["search"]["nodes"][1] is not None
    assert answer["errors"][0]["path"] == ["search", "nodes", 0]


ALIASES = """query Both { a: search(query: "is:pr", type: ISSUE, first: 1) { issueCount }
    b: repository(owner: "ada", name: "engine") { pullRequest(number: 1) { labels(first: 9) { nodes { name } } } }
    c: repository(owner: "ada", name: "engine") { nameWithOwner } }"""


def part(*path: str | int, kind: str = "") -> Faults:
    return Faults(scripted=(ScriptedFault(endpoint="graphql", fault=Fault.FIELD, path=path, error_type=kind),))


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ((), ["c"]),
        (("b",), ["b"]),
        (("b", "pullRequest", "labels", "nodes", 2), ["b", "pullRequest", "labels", "nodes", 2]),
    ],
)
def test_a_part_fails_at_its_path_and_what_stands_beside_it_is_whole(small, tell, folder, path, where):
    tell({"ada/engine": {"pull_requests": [{"number": 1, "labels": ["fast", "c", "api"]}]}})
    with served(folder, part(*path)) as http:
        bad, good = (http.post("/graphql", json={"query": ALIASES}).json() for _ in range(2))
    assert [error["path"] for error in bad["errors"]] == [where]
    value = bad["data"]
    for step in where:
        value = value[step]
    assert value is None
    assert bad["data"]["a"] == {"issueCount": 4}
    assert "errors" not in good
    assert len(good["data"]["b"]["pullRequest"]["labels"]["nodes"]) == 3


def test_a_part_that_cannot_be_null_takes_what_holds_it_along(small, folder):
    with served(folder, part("a", kind="NOT_FOUND")) as http:
        answer = http.post("/graphql", json={"query": ALIASES}).json()
    assert answer["errors"][0]["type"] == "NOT_FOUND"
    assert answer["errors"][0]["path"] == ["a"]
    assert answer.get("data") is None


def test_a_search_says_that_it_is_incomplete(small, folder):
    with served(folder, Faults.at("GET /search/code", 1, Fault.INCOMPLETE)) as http:
        bad, good = (http.get("/search/code", params={"q": "filename:txt"}).json() for _ in range(2))
    assert (bad["incomplete_results"], good["incomplete_results"]) == (True, False)
    assert len(bad["items"]) == len(good["items"]) // 2 > 0


def test_a_slow_answer_is_right_and_a_hanging_one_never_comes(small, folder):
    scripted = (
        ScriptedFault(endpoint="GET /user", call=1, fault=Fault.SLOW),
        ScriptedFault(endpoint="GET /user", call=2, fault=Fault.HANG),
    )
    with served(folder, Faults(scripted=scripted, slow_seconds=0.3)) as http:
        answer = http.get("/user")
        assert answer.status_code == 200
        assert answer.elapsed.total_seconds() > 0.2
        with pytest.raises(httpx.ReadTimeout):
            http.get("/user", timeout=0.3)


def test_an_answer_can_be_written_out(small, folder):
    scripted = ScriptedFault(
        endpoint="*", call=2, times=2, answer_status=429, answer_headers={"retry-after": "7"}, answer_body="{}"
    )
    with served(folder, Faults(scripted=(scripted,))) as http:
        answers = [http.get("/user") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 429, 429, 200]
    assert answers[1].headers["retry-after"] == "7"


@pytest.mark.slow
def test_chances_are_the_same_for_the_same_seed(small, folder, caller):
    def statuses(seed: int) -> list[int]:
        asks = caller(faults=Faults(chances={Fault.BAD_GATEWAY: 0.3, Fault.UNAVAILABLE: 0.2}, seed=seed))
        first = [asks.get("/user").status_code for _ in range(40)]
        asks.http.post("/_sandbox/reset")
        assert [asks.get("/user").status_code for _ in range(40)] == first
        return first

    assert statuses(1) == statuses(1) != statuses(2)
    assert set(statuses(1)) == {200, 502, 503}
    assert 8 < sum(status != 200 for status in statuses(1)) < 32
