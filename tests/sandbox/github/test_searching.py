"""The search syntax."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sandbox.github import Limits
from sandbox.github.searching import BadQueryError, parse_moments, parse_query, parse_sizes

SEARCH = """query($query: String!, $first: Int!, $after: String) {
  search(query: $query, type: ISSUE, first: $first, after: $after) {
    issueCount pageInfo { hasNextPage endCursor }
    nodes { ... on PullRequest { number mergedAt } } } }"""


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def numbers(caller, query: str, **settings) -> list[int]:
    found = caller(**settings).data(SEARCH, query=query, first=100)["search"]
    assert found["issueCount"] == len(found["nodes"])
    return [node["number"] for node in found["nodes"]]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("2026-01-01..2026-01-31", "2026-01-01T00:00:00", "2026-01-31T23:59:59"),
        ("2026-01-01T00:00:00Z..2026-01-31T23:59:59Z", "2026-01-01T00:00:00", "2026-01-31T23:59:59"),
        ("2026-01-01T00:00:00+02:00..2026-01-02T00:00:00-0130", "2025-12-31T22:00:00", "2026-01-02T01:30:00"),
        ("2026-02-28", "2026-02-28T00:00:00", "2026-02-28T23:59:59"),
    ],
)
def test_ranges_of_moments_include_both_ends(text, low, high):
    found = parse_moments(text)
    assert (found.low, found.high) == (moment(low), moment(high))


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "2026-02-30", "2026-01-01T25:00:00Z"])
def test_what_is_no_date_is_refused(text):
    with pytest.raises(BadQueryError):
        parse_query(f"merged:{text}")


@pytest.mark.parametrize(("text", "span"), [("5..9", (5, 9)), (">=500", (500, None))])
def test_ranges_of_sizes(text, span):
    assert parse_sizes(text) == span


def test_a_month_holds_its_first_and_its_last_second(small, caller):
    window = "merged:2026-01-01T00:00:00Z..2026-01-31T23:59:59Z"
    assert sorted(numbers(caller, f"repo:ada/engine is:pr is:merged {window}")) == [1, 2]
    assert numbers(caller, "repo:ada/engine is:pr merged:2026-01-01T00:00:01Z..2026-01-31T23:59:59Z") == [2]
    assert numbers(caller, "repo:ada/engine is:pr merged:2026-01-01..2026-01-31T23:59:58Z") == [1]


def test_states_and_order(small, caller):
    assert sorted(numbers(caller, "is:pr")) == [1, 2, 3, 4]
    assert sorted(numbers(caller, "is:pr is:merged")) == [1, 2]
    assert numbers(caller, "is:pr is:merged sort:created-asc") == [1, 2]
    assert numbers(caller, "is:pr is:merged sort:created-desc") == [2, 1]


@pytest.mark.parametrize("query", ["is:merged", "is:pr author:bob", "is:pr stars:>5", "is:pr -is:merged", "is:pr fast"])
def test_an_unsupported_search_is_a_sandbox_error_not_an_empty_answer(small, caller, query):
    with pytest.raises(NotImplementedError):
        caller().data(SEARCH, query=query, first=1)


def test_several_repositories_are_united(small, repository, caller):
    other = repository("eve/loom")
    root = other.commit("Begin", "2026-01-01T00:00:00")
    other.write(other.commit("Weave (#40)", "2026-01-10T00:00:00", root))
    assert sorted(numbers(caller, "repo:ada/engine repo:eve/loom is:pr is:merged")) == [1, 2, 40]
    assert numbers(caller, "repo:eve/loom is:pr is:merged") == [40]
    assert numbers(caller, "repo:eve/nothing is:pr") == []


def test_search_does_not_follow_renames(small, tell, caller):
    tell({"ada/engine": {"former_names": ["ada/machine"]}})
    assert numbers(caller, "repo:ada/machine is:pr") == []
    assert len(numbers(caller, "repo:ADA/Engine is:pr")) == 4


def test_search_ends_at_its_cap_without_a_word_and_counts_the_truth(repository, caller):
    made = repository()
    tip = made.commit("Begin", "2026-01-01T00:00:00")
    for number in range(1, 8):
        tip = made.commit(f"Step (#{number})", f"2026-01-0{number}T01:00:00", tip)
    made.write(tip)
    asks, seen, after = caller(limits=Limits(search_cap=5)), [], None
    while True:
        page = asks.data(SEARCH, query="is:pr is:merged", first=2, after=after)["search"]
        assert page["issueCount"] == 7
        seen += [node["number"] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert seen == [7, 6, 5, 4, 3]


def test_cached_facts_are_dropped_when_the_repository_changes(small, tell, caller, folder):
    asks = caller(fresh_seconds=0)
    query = """{ search(query: "repo:ada/engine is:pr is:merged merged:2026-01-31", type: ISSUE, first: 5) {
      issueCount nodes { ... on PullRequest { number title labels(first: 5) { nodes { name } } } } } }"""
    first = asks.data(query)["search"]
    assert asks.data(query)["search"] == first
    tell({"ada/engine": {"pull_requests": [{"number": 2, "title": "Renamed", "labels": ["fast"]}]}})
    (node,) = asks.data(query)["search"]["nodes"]
    assert (node["title"], node["labels"]["nodes"]) == ("Renamed", [{"name": "fast"}])


def test_several_repositories_are_united_and_unknown_ones_find_nothing(small, repository, tell, caller):
    other = repository("bob/loom")
    root = other.commit("Begin", "2026-01-01T00:00:00")
    other.write(other.commit("Weave (#1)", "2026-01-10T00:00:00", root, committer="GitHub <noreply@github.com>"))
    tell({"bob/loom": {"former_names": ["bob/web"]}})
    query = """query($words: String!) { search(query: $words, type: ISSUE, first: 9) {
      issueCount nodes { ... on PullRequest { number repository { nameWithOwner } } } } }"""

    def found(*names: str) -> int:
        words = " ".join(f"repo:{name}" for name in names) + " is:pr is:merged merged:2026-01-01..2026-01-31"
        return caller().data(query, words=words)["search"]["issueCount"]

    assert found("ada/engine", "bob/loom") == found("ada/engine") + found("bob/loom") == 3
    assert found("ada/engine", "nobody/nothing") == 2
    assert (found("bob/web"), found("BOB/Loom")) == (0, 1)
