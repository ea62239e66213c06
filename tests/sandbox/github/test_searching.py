"""The search syntax."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sandbox.github import Limits
from sandbox.github.searching import BadQueryError, parse_counts, parse_moments, parse_query

SEARCH = """query($query: String!, $first: Int!, $after: String) {
  search(query: $query, type: ISSUE, first: $first, after: $after) {
    issueCount pageInfo { hasNextPage endCursor }
    nodes { ... on PullRequest { number mergedAt } ... on Issue { number } } } }"""
END = datetime(9999, 12, 31, tzinfo=UTC)


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
        ("2026-02", "2026-02-01T00:00:00", "2026-02-28T23:59:59"),
        ("<2026-01-05", "0001-01-01T00:00:00", "2026-01-04T23:59:59"),
        ("<=2026-01-05", "0001-01-01T00:00:00", "2026-01-05T23:59:59"),
        ("*..2026-01-05T10:00:00Z", "0001-01-01T00:00:00", "2026-01-05T10:00:00"),
    ],
)
def test_ranges_of_moments_include_both_ends(text, low, high):
    found = parse_moments(text)
    assert (found.low, found.high) == (moment(low), moment(high))


def test_open_ranges_begin_at_or_after_their_bound():
    assert parse_moments(">=2026-01-05").low == moment("2026-01-05T00:00:00")
    assert parse_moments(">2026-01-05").low == moment("2026-01-06T00:00:00")
    assert parse_moments(">2026-01-05").high == END


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "2026-02-30", "2026-01-01T25:00:00Z"])
def test_what_is_no_date_is_refused(text):
    with pytest.raises(BadQueryError):
        parse_query(f"merged:{text}")


@pytest.mark.parametrize(
    ("text", "span"), [("5..9", (5, 9)), (">500", (501, float("inf"))), ("<=3", (float("-inf"), 3)), ("7", (7, 7))]
)
def test_ranges_of_numbers(text, span):
    assert parse_counts(text) == span


def test_a_month_holds_its_first_and_its_last_second(small, caller):
    window = "merged:2026-01-01T00:00:00Z..2026-01-31T23:59:59Z"
    assert sorted(numbers(caller, f"repo:ada/engine is:pr is:merged {window}")) == [1, 2]
    assert numbers(caller, "repo:ada/engine is:pr merged:2026-01-01T00:00:01Z..2026-01-31T23:59:59Z") == [2]
    assert numbers(caller, "repo:ada/engine is:pr merged:2026-01-01..2026-01-31T23:59:58Z") == [1]


def test_states_and_kinds(small, tell, caller):
    tell({"ada/engine": {"issues": [{"number": 7, "title": "Slow dict", "created_at": "2025-06-01T00:00:00Z"}]}})
    assert numbers(caller, "is:pr is:open") == [3]
    assert sorted(numbers(caller, "is:pr is:closed")) == [1, 2, 4]
    assert numbers(caller, "is:pr is:unmerged is:closed") == [4]
    assert numbers(caller, "is:issue") == [7]
    assert numbers(caller, "type:pr state:open") == [3]
    assert numbers(caller, "is:pr -is:merged -is:open") == [4]


def test_words_authors_and_order(small, caller):
    assert numbers(caller, "is:pr author:bob") == [1]
    assert numbers(caller, 'is:pr "make it" fast') == [1]
    assert numbers(caller, "is:pr is:merged sort:created-asc") == [1, 2]
    assert numbers(caller, "is:pr is:merged sort:created-desc") == [2, 1]


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


def test_rest_search_ends_at_its_cap_too_and_refuses_what_lies_beyond(small, caller):
    asks = caller(limits=Limits(search_cap=2))
    page = asks.get("/search/issues", q="is:pr repo:ada/engine", per_page=2)
    assert (page.json()["total_count"], len(page.json()["items"])) == (4, 2)
    assert "link" not in page.headers
    beyond = asks.get("/search/issues", q="is:pr repo:ada/engine", per_page=2, page=2)
    assert (beyond.status_code, beyond.json()["message"]) == (422, "Only the first 2 search results are available")


def test_rest_search_refuses_what_it_cannot_read(small, caller):
    assert caller().get("/search/issues", q="is:pr merged:soon").status_code == 422
    assert caller().get("/search/issues", q="repo:eve/nothing").status_code == 422


def test_repositories_are_found_by_stars_and_without_forks(small, repository, tell, caller):
    repository("eve/loom").write(None)
    repository("bob/engine").write(None)
    tell({"ada/engine": {"stars": 700}, "eve/loom": {"stars": 20}, "bob/engine": {"stars": 900, "is_fork": True}})
    query = """query($q: String!) { search(query: $q, type: REPOSITORY, first: 9) {
      repositoryCount nodes { ... on Repository { nameWithOwner } } } }"""
    found = caller().data(query, q="stars:>=500")["search"]
    assert found == {"repositoryCount": 1, "nodes": [{"nameWithOwner": "ada/engine"}]}
    assert caller().data(query, q="fork:true stars:>=500")["search"]["repositoryCount"] == 2
    items = caller().get("/search/repositories", q="stars:>10").json()["items"]
    assert [item["full_name"] for item in items] == ["ada/engine", "eve/loom"]


def test_what_was_told_of_a_pull_request_is_forgotten_when_its_repository_changes(small, tell, caller, folder):
    import time

    from sandbox.github.library import FRESH_SECONDS

    asks = caller()
    query = """{ search(query: "repo:ada/engine is:merged merged:2026-01-31", type: ISSUE, first: 5) {
      issueCount nodes { ... on PullRequest { number title labels(first: 5) { nodes { name } } } } } }"""
    first = asks.data(query)["search"]
    assert asks.data(query)["search"] == first
    tell({"ada/engine": {"pull_requests": [{"number": 2, "title": "Renamed", "labels": ["fast"]}]}})
    time.sleep(FRESH_SECONDS + 0.1)
    (node,) = asks.data(query)["search"]["nodes"]
    assert (node["title"], node["labels"]["nodes"]) == ("Renamed", [{"name": "fast"}])


def test_several_repositories_are_united_and_unknown_and_former_names_find_nothing(small, repository, tell, caller):
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
