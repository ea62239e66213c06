"""Windows of many repositories over real HTTP, from a GitHub that counts its points."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import Cost, RejectionReason
from formulacode_dagster.sandbox.github import Fault, Faults, Limits
from tests.formulacode_dagster.github.conftest import FEBRUARY


def every(seconds: float, count: int, start: datetime = FEBRUARY.start) -> Iterator[datetime]:
    """*count* moments from *start* on, *seconds* apart."""
    return (start + timedelta(seconds=int(seconds * index)) for index in range(count))


def numbers(window: Any) -> list[int]:
    assert isinstance(window, MergedWindow), window
    assert window.count.reported == window.count.stored == len(window.pull_requests)
    return [one.number for one in window.pull_requests]


def pages(body: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """The pages of merged pull requests in an answer, by alias."""
    aliases = [name for name in body["data"] if name.startswith("s") and name[1:].isdigit()]
    return [(alias, body["data"][alias]["nodes"]) for alias in aliases]


def failure(end: Any) -> ItemFailure:
    assert isinstance(end, ItemFailure), end
    return end


def test_repositories_that_merged_little_share_requests_and_each_gets_its_own_by_number(world, clock):
    sizes = [0, 1, 2, 30, 120, 47]
    for index, size in enumerate(sizes):
        world.merge(f"demo/p{index}", every(600, size))
    ends = world.taken_in(world.rows(), clock)
    assert [numbers(end) for end in ends] == [list(range(1, size + 1)) for size in sizes]
    assert world.books["endpoints"]["graphql MergedCounts"] == 1
    # 120 by themselves, in a full page and one of 20; the others, 80 in all, in one more
    assert world.books["endpoints"]["graphql MergedPullRequests"] == 3
    assert world.books["points"]["graphql"] == 1 + 2 + 1 + 2


def test_the_cost_of_what_was_asked_together_is_shared_out_whole(world, clock):
    for index, size in enumerate([0, 3, 40, 150]):
        world.merge(f"demo/p{index}", every(600, size))
    ends = world.taken_in(world.rows(), clock)
    whole = Cost.total(end.cost for end in ends)
    assert whole.model_copy(update={"seconds": 0}) == world.cost.model_copy(update={"seconds": 0})
    assert whole.seconds == pytest.approx(world.cost.seconds)
    assert whole.api_points == world.books["points"]["graphql"] <= 5 * 193 / 100
    assert whole.api_requests == world.books["total"]
    assert ends[0].cost.api_points == 0
    assert ends[3].cost.api_points == max(end.cost.api_points for end in ends)


def test_the_window_is_half_open_to_the_second(world, clock):
    second = timedelta(seconds=1)
    world.merge("demo/p", [FEBRUARY.start - second, FEBRUARY.start, FEBRUARY.end - second, FEBRUARY.end])
    (end,) = world.taken_in(world.rows(), clock)
    assert numbers(end) == [2, 3]


def test_more_than_search_shows_are_found_by_cutting_the_time_of_several_at_once(world, clock):
    world.merge("demo/busy", [*every(60, 900), *every(1, 300, datetime(2026, 2, 20, tzinfo=UTC))])
    world.merge("demo/burst", [*every(3000, 400), *every(1 / 4, 1400, datetime(2026, 2, 7, tzinfo=UTC))])
    world.merge("demo/calm", every(600, 20))
    busy, burst, calm = (numbers(end) for end in sorted_ends(world, clock, "busy", "burst", "calm"))
    assert (busy, burst, calm) == (list(range(1, 1201)), list(range(1, 1801)), list(range(1, 21)))
    assert world.books["points"]["graphql"] <= 5 * 3020 / 100


def sorted_ends(world, clock, *names: str, **more: Any) -> list[Any]:
    rows = {row.full_name.partition("/")[2]: row for row in world.rows()}
    return world.taken_in([rows[name] for name in names], clock, **more)


def test_a_second_with_more_than_search_shows_fails_by_name_and_alone(world, clock):
    world.merge("demo/burst", [FEBRUARY.start] * 1001)
    world.merge("demo/calm", every(600, 5))
    burst, calm = sorted_ends(world, clock, "burst", "calm")
    assert "demo/burst is not complete: 1001 were merged in the second 2026-02-01T00:00:00Z" in str(failure(burst))
    assert burst.kind == "incomplete"
    assert numbers(calm) == [1, 2, 3, 4, 5]


def test_a_repository_renamed_since_discovery_is_taken_in_under_its_present_name(world, clock):
    world.merge("demo/new", every(600, 3), former_names=["demo/old"])
    world.merge("demo/other", every(600, 2))
    renamed, other = world.taken_in(world.rows(new="demo/old"), clock)
    assert numbers(renamed) == [1, 2, 3]
    assert {one.repository for one in renamed.pull_requests} == {renamed.count.repository} == {"demo/new"}
    assert numbers(other) == [1, 2]
    assert world.books["endpoints"]["graphql MergedCounts"] == 2


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"is_archived": True, "archived_at": "2026-02-01T00:00:00Z"}, RejectionReason.ARCHIVED),
        ({"is_private": True}, RejectionReason.PRIVATE),
    ],
)
def test_a_repository_closed_since_discovery_ends_in_a_state_of_its_own(world, clock, facts, reason):
    world.merge("demo/closed", every(600, 3), **facts)
    world.merge("demo/open", every(600, 2))

    def see_private(operation, variables, body, call):
        if operation == "MergedCounts" and "is_private" in facts:
            body["data"]["nodes"][0] = body["data"]["nodes"][1] | {"databaseId": rows[0].id, "isPrivate": True}
            body.pop("errors", None)

    rows = world.rows()
    closed, opened = world.taken_in(rows, clock, change=see_private)
    assert isinstance(closed, Rejection)
    assert closed.reason is reason
    assert numbers(opened) == [1, 2]


def test_a_repository_archived_within_the_month_keeps_what_it_merged_before(world, clock):
    world.merge("demo/p", every(600, 3), is_archived=True, archived_at="2026-02-20T00:00:00Z")
    (end,) = world.taken_in(world.rows(), clock)
    assert numbers(end) == [1, 2, 3]


def test_an_empty_repository_ends_in_a_state_of_its_own(world, clock):
    world.merge("demo/open", every(600, 2))

    def empty(operation, variables, body, call):
        if operation == "MergedCounts":
            body["data"]["nodes"][0]["isEmpty"] = True

    (end,) = world.taken_in(world.rows(), clock, change=empty)
    assert isinstance(end, Rejection)
    assert end.reason is RejectionReason.EMPTY


def test_a_repository_that_vanished_fails_alone_and_is_no_empty_window(world, clock):
    world.merge("demo/gone", every(600, 3), is_gone=True)
    world.merge("demo/there", every(600, 2))
    gone, there = world.taken_in(world.rows(), clock)
    assert failure(gone).kind == "vanished"
    assert "demo/gone is gone from GitHub" in str(gone)
    assert numbers(there) == [1, 2]


def test_a_null_repository_without_a_reason_is_asked_again_and_then_fails_alone(world, clock):
    world.merge("demo/a", every(600, 3))
    world.merge("demo/b", every(600, 2))
    rows = world.rows()

    def lose(operation, variables, body, call):
        for index, node in enumerate(body["data"].get("nodes") or ()):
            if node["databaseId"] == rows[0].id:
                body["data"]["nodes"][index] = None
                body["errors"] = [{"message": "Something went wrong", "path": ["nodes", index]}]

    a, b = world.taken_in(rows, clock, change=lose)
    assert failure(a).kind == "incomplete"
    assert "Something went wrong" in str(a)
    assert numbers(b) == [1, 2]
    assert world.books["endpoints"]["graphql MergedCounts"] == 3


@pytest.mark.parametrize("times", [1, 10])
def test_a_count_that_fails_alone_is_asked_alone(world, clock, times):
    for name in "abc":
        world.merge(f"demo/{name}", every(600, 3))

    def fail(operation, variables, body, call):
        for name in [name for name, text in variables.items() if "repo:demo/b " in str(text)]:
            if operation == "MergedCounts" and call <= times:
                alias = f"c{name[1:]}"
                body["data"][alias] = None
                body["errors"] = [{"type": "SEARCH", "message": "the search broke", "path": [alias]}]

    a, b, c = world.taken_in(world.rows(), clock, change=fail)
    assert numbers(a) == numbers(c) == [1, 2, 3]
    if times == 1:
        assert numbers(b) == [1, 2, 3]
    else:
        assert "demo/b merged: SEARCH at c0: the search broke" in str(failure(b))


def test_a_count_that_takes_the_whole_answer_with_it_fails_alone(world, clock):
    for name in "abcd":
        world.merge(f"demo/{name}", every(600, 3))

    def fail(operation, variables, body, call):
        if operation == "MergedCounts" and any("repo:demo/b " in str(text) for text in variables.values()):
            return {"data": None, "errors": [{"type": "SEARCH", "message": "the search broke", "path": ["c1"]}]}
        return None

    a, b, c, d = world.taken_in(world.rows(), clock, change=fail)
    assert numbers(a) == numbers(c) == numbers(d) == [1, 2, 3]
    assert "what demo/b merged cannot be counted" in str(failure(b))


def test_a_search_that_stays_short_fails_the_repository_it_lacks_and_no_other(world, clock):
    for name in "abc":
        world.merge(f"demo/{name}", every(600, 4))

    def lose(operation, variables, body, call):
        for alias, nodes in pages(body):
            for index, node in enumerate(nodes):
                if node["repository"]["nameWithOwner"] == "demo/b" and node["number"] == 3:
                    nodes[index] = None
                    body["errors"] = [{"message": "it broke", "path": [alias, "nodes", index]}]

    a, b, c = world.taken_in(world.rows(), clock, change=lose)
    assert numbers(a) == numbers(c) == [1, 2, 3, 4]
    assert failure(b).kind == "incomplete"
    assert "demo/b is not complete: 3 of 4 in 2026-02-01T00:00:00Z..2026-02-28T23:59:59Z" in str(b)
    assert "it broke" in str(b)
    assert world.books["endpoints"]["graphql MergedPullRequests"] == 3


@pytest.mark.parametrize("times", [1, 10])
def test_a_search_that_fails_alone_is_made_alone(world, clock, times):
    for name in "abc":
        world.merge(f"demo/{name}", every(600, 3))

    def fail(operation, variables, body, call):
        for name, text in variables.items():
            if operation == "MergedPullRequests" and call <= times and "repo:demo/b " in str(text):
                alias = f"s{name[1:]}"
                body["data"][alias] = None
                body["errors"] = [{"type": "SEARCH", "message": "the search broke", "path": [alias]}]

    a, b, c = world.taken_in(world.rows(), clock, change=fail)
    assert numbers(a) == numbers(c) == [1, 2, 3]
    if times == 1:
        assert numbers(b) == [1, 2, 3]
    else:
        assert "0 of 3 in" in str(failure(b))
        assert "the search broke" in str(b)


def test_a_request_that_github_refuses_fails_only_the_repository_that_is_at_fault(world, clock):
    for name in "abc":
        world.merge(f"demo/{name}", every(600, 3))

    def refuse(operation, variables, body, call):
        if operation == "MergedPullRequests" and any("repo:demo/b " in str(text) for text in variables.values()):
            return {"data": None, "errors": [{"type": "SEARCH", "message": "the search broke"}]}
        return None

    a, b, c = world.taken_in(world.rows(), clock, change=refuse)
    assert numbers(a) == numbers(c) == [1, 2, 3]
    assert "the search broke" in str(failure(b))


def test_a_page_cut_in_half_is_asked_again(world, clock):
    world.merge("demo/p", every(600, 50))
    (end,) = world.taken_in(world.rows(), clock, faults=Faults.at("graphql MergedPullRequests", 1, Fault.HALF_PAGE))
    assert len(numbers(end)) == 50


def test_one_merged_between_count_and_page_is_taken_in_too(world, clock):
    world.merge("demo/a", every(600, 4))
    world.merge("demo/b", every(600, 3))

    def late(operation, variables, body, call):
        if operation == "MergedCounts" and call == 1:
            body["data"]["c0"]["issueCount"] -= 1

    a, b = world.taken_in(world.rows(), clock, change=late)
    assert (numbers(a), numbers(b)) == ([1, 2, 3, 4], [1, 2, 3])


def test_one_shown_twice_does_not_stand_for_another(world, clock):
    world.merge("demo/p", every(600, 10))

    def double(operation, variables, body, call):
        for _, nodes in pages(body):
            nodes[0] = nodes[1]

    (end,) = world.taken_in(world.rows(), clock, change=double)
    assert "9 of 10 in" in str(failure(end))
    assert "1 of them twice" in str(end)


@pytest.mark.parametrize(
    "foreign", [{"mergedAt": "2026-03-01T00:00:00Z"}, {"repository": {"databaseId": 2, "nameWithOwner": "x/y"}}]
)
def test_what_was_not_asked_for_is_not_taken_in(world, clock, foreign):
    world.merge("demo/p", every(600, 3))

    def change(operation, variables, body, call):
        for _, nodes in pages(body):
            nodes[0] |= foreign

    (end,) = world.taken_in(world.rows(), clock, change=change)
    assert "search returned" in str(failure(end))


def test_a_field_that_is_not_there_is_no_default_and_fails_its_own_repository(world, clock):
    world.merge("demo/a", every(600, 3))
    world.merge("demo/b", every(600, 3))

    def lose(operation, variables, body, call):
        for _, nodes in pages(body):
            for node in nodes:
                if node["repository"]["nameWithOwner"] == "demo/a":
                    node.pop("mergedAt")

    a, b = world.taken_in(world.rows(), clock, change=lose)
    assert failure(a).kind == "incomplete"
    assert "mergedAt" in str(a)
    assert numbers(b) == [1, 2, 3]


def test_a_page_too_heavy_for_github_is_asked_in_smaller_ones(world, clock):
    world.merge("demo/p", every(600, 60))
    world.merge("demo/q", every(600, 20))

    def heavy(operation, variables, body, call):
        return httpx.Response(502) if sum(size for name, size in variables.items() if "first" in name) > 30 else None

    p, q = world.taken_in(world.rows(), clock, change=heavy)
    assert (len(numbers(p)), len(numbers(q))) == (60, 20)


def test_exhausted_limits_are_waited_for(world, clock):
    world.merge("demo/p", every(600, 5))
    (end,) = world.taken_in(world.rows(), clock, faults=Faults.at("graphql", 2, Fault.PRIMARY_LIMIT))
    assert len(numbers(end)) == 5
    assert clock.slept


def issue(number: int, **known: Any) -> dict[str, Any]:
    return (
        {"number": number, "title": f"Issue {number}", "body": "It is slow", "author": "ann"}
        | {"created_at": "2025-12-31T00:00:00Z"}
        | known
    )


def test_labels_and_issues_beyond_the_page_are_completed(world, clock):
    names = [f"label-{number:03}" for number in range(250)]
    closed = list(range(101, 126))
    facts = {"number": 1, "labels": names, "closes": closed}
    world.merge("demo/p", every(600, 1), pull_requests=[facts], issues=[issue(number) for number in closed])
    (end,) = world.taken_in(world.rows(), clock)
    (pull_request,) = end.pull_requests
    assert pull_request.labels == tuple(names)
    assert [linked.number for linked in pull_request.linked_issues] == closed


def test_labels_that_do_not_add_up_are_asked_again_and_then_fail_the_repository(world, clock):
    facts = {"number": 1, "labels": ["a", "b"]}
    world.merge("demo/p", every(600, 1), pull_requests=[facts])
    world.merge("demo/q", every(600, 1))

    def lose_once(operation, variables, body, call):
        for _, nodes in pages(body):
            del nodes[0]["labels"]["nodes"][1:]

    p, q = world.taken_in(world.rows(), clock, change=lose_once)
    assert p.pull_requests[0].labels == ("a", "b")

    def lose(operation, variables, body, call):
        lose_once(operation, variables, body, call)
        if operation == "PullRequestLabels":
            body["data"]["node"]["labels"]["nodes"].pop()

    p, q = world.taken_in(world.rows(), clock, change=lose)
    assert "1 of 2 labels" in str(failure(p))
    assert numbers(q) == [1]


def test_nothing_of_an_issue_that_was_written_after_the_merge_is_taken(world, clock):
    edits = [
        {"edited_at": "2026-02-02T00:00:00Z", "body": "Still slow"},
        {"edited_at": "2026-02-11T00:00:00Z", "body": "Fixed by caching"},
    ]
    issues = [
        issue(101, created_at="2026-02-01T00:00:00Z"),
        issue(102, created_at="2026-02-10T00:00:00Z"),
        issue(103, created_at="2026-02-01T00:00:00Z", body="Slow", edits=edits),
    ]
    facts = {"number": 1, "closes": [101, 102, 103]}
    world.merge("demo/p", [datetime(2026, 2, 10, tzinfo=UTC)], pull_requests=[facts], issues=issues)
    (end,) = world.taken_in(world.rows(), clock)
    (pull_request,) = end.pull_requests
    assert [(linked.number, linked.body) for linked in pull_request.linked_issues] == [
        (101, "It is slow"),
        (103, "Still slow"),
    ]


def test_two_runs_of_a_closed_month_are_equal(world, clock):
    for index, size in enumerate([12, 120]):
        world.merge(f"demo/p{index}", every(600, size))
    rows = world.rows()
    assert world.taken_in(rows, clock) == world.taken_in(rows[::-1], clock)[::-1]


def test_a_dead_github_ends_every_window_with_one_error(world, clock):
    from formulacode_dagster.models.errors import OutsideSystemError

    world.merge("demo/p", every(600, 3))
    world.merge("demo/q", every(600, 3))

    def dead(operation, variables, body, call):
        return httpx.Response(502)

    p, q = world.taken_in(world.rows(), clock, change=dead)
    assert isinstance(p, OutsideSystemError)
    assert p is q


def test_search_caps_lower_than_ours_are_no_loss(world, clock):
    world.merge("demo/p", every(600, 30))
    (end,) = world.taken_in(world.rows(), clock, limits=Limits(search_cap=20))
    assert "20 of 30 in" in str(failure(end))
