from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from formulacode_dagster.github.merged import merged_pull_requests
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from tests.formulacode_dagster.github.conftest import FakeGitHub, repository

FEBRUARY = Month.parse("2026-02")


def window(connect, answer, **known):
    async def inside():
        async with connect(answer) as client:
            result = await merged_pull_requests(client, repository(**known), FEBRUARY)
            return result, client.cost

    return asyncio.run(inside())


def altered(fake, change):
    """*fake* with its JSON answers passed through *change*(body, call number)."""
    calls = []

    def answer(request: httpx.Request) -> httpx.Response:
        calls.append(request)
        body = json.loads(fake(request).content)
        changed = change(body, len(calls))
        return httpx.Response(200, json=body if changed is None else changed)

    return answer


def test_every_pull_request_of_the_window_is_taken_in_by_number(connect):
    result, cost = window(connect, FakeGitHub.spread(230))
    assert [pr.number for pr in result.pull_requests] == list(range(1, 231))
    assert (result.count.reported, result.count.stored) == (230, 230)
    assert cost.api_requests == 3
    assert cost.api_points == 6


def test_the_window_is_half_open_to_the_second(connect):
    fake = FakeGitHub([])
    moments = [FEBRUARY.start - timedelta(seconds=1), FEBRUARY.start, FEBRUARY.end - timedelta(seconds=1), FEBRUARY.end]
    fake.pull_requests = [fake.pull_request(number, moment) for number, moment in enumerate(moments, 1)]
    result, _ = window(connect, fake)
    assert [pr.number for pr in result.pull_requests] == [2, 3]
    assert fake.searches == ["repo:demo/project is:pr is:merged merged:2026-02-01T00:00:00Z..2026-02-28T23:59:59Z"]


@pytest.mark.parametrize(("count", "seconds"), [(1001, 60), (2600, 1), (5200, 400)])
def test_more_than_search_shows_are_found_by_splitting_the_time(connect, count, seconds):
    result, cost = window(connect, FakeGitHub.spread(count, seconds=seconds))
    assert len(result.pull_requests) == count
    assert result.count.reported == count
    if seconds > 1:
        assert cost.api_points <= 5 * count / 100


def test_a_second_with_more_than_search_shows_is_a_named_failure(connect):
    with pytest.raises(ItemFailure, match="in the second 2026-02-01T00:00:00Z") as caught:
        window(connect, FakeGitHub.spread(1001, seconds=0))
    assert caught.value.kind == "incomplete"


def test_an_empty_window_is_complete(connect):
    result, _ = window(connect, FakeGitHub([]))
    assert result.pull_requests == ()
    assert result.count.reported == 0


def test_a_page_cut_in_half_is_asked_again(connect):
    def cut(body, call):
        if call == 1:
            body["data"]["search"]["nodes"] = body["data"]["search"]["nodes"][:20]

    result, _ = window(connect, altered(FakeGitHub.spread(50), cut))
    assert len(result.pull_requests) == 50


def test_a_window_that_stays_short_fails_by_name_and_is_never_stored_short(connect):
    def cut(body, call):
        body["data"]["search"]["nodes"] = body["data"]["search"]["nodes"][:-1]

    with pytest.raises(ItemFailure, match=r"demo/project.*49 of 50") as caught:
        window(connect, altered(FakeGitHub.spread(50), cut))
    assert caught.value.kind == "incomplete"


def test_a_pull_request_that_github_failed_to_load_is_asked_for_again(connect):
    def lose(body, call):
        if call == 1:
            body["data"]["search"]["nodes"][3] = None
            body["errors"] = [{"message": "Something went wrong", "path": ["search", "nodes", 3]}]

    result, _ = window(connect, altered(FakeGitHub.spread(10), lose))
    assert len(result.pull_requests) == 10


def test_one_counted_twice_does_not_stand_for_another(connect):
    def double(body, call):
        nodes = body["data"]["search"]["nodes"]
        nodes[0] = nodes[1]

    with pytest.raises(ItemFailure, match="9 of 10"):
        window(connect, altered(FakeGitHub.spread(10), double))


@pytest.mark.parametrize(
    "foreign", [{"mergedAt": "2026-03-01T00:00:00Z"}, {"repository": {"databaseId": 2, "nameWithOwner": "x/y"}}]
)
def test_what_does_not_belong_to_the_window_is_not_taken_in(connect, foreign):
    def change(body, call):
        body["data"]["search"]["nodes"][0] |= foreign

    with pytest.raises(ItemFailure, match="search returned #3"):
        window(connect, altered(FakeGitHub.spread(3), change))


def test_a_field_that_is_not_there_is_no_default(connect):
    def lose(body, call):
        del body["data"]["search"]["nodes"][0]["mergedAt"]

    with pytest.raises(ItemFailure, match=r"nodes\.0.*mergedAt") as caught:
        window(connect, altered(FakeGitHub.spread(3), lose))
    assert caught.value.kind == "incomplete"


def test_a_repository_that_vanished_is_no_empty_window(connect):
    def vanish(body, call):
        body["data"]["repository"] = None
        body["data"]["search"] |= {"issueCount": 0, "nodes": []}
        body["errors"] = [{"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve to a node"}]

    with pytest.raises(ItemFailure, match="Could not resolve to a node") as caught:
        window(connect, altered(FakeGitHub.spread(3), vanish))
    assert caught.value.kind == "vanished"


def test_a_repository_that_was_renamed_is_searched_by_its_present_name(connect):
    fake = FakeGitHub.spread(3)
    fake.name = "demo/renamed"
    result, _ = window(connect, fake)
    assert {pr.repository for pr in result.pull_requests} == {"demo/renamed"}
    assert len(result.pull_requests) == 3


def test_a_page_too_heavy_for_github_is_asked_in_smaller_ones(connect):
    fake = FakeGitHub.spread(60)

    def answer(request: httpx.Request) -> httpx.Response:
        if json.loads(request.content)["variables"].get("first", 0) > 30:
            return httpx.Response(502)
        return fake(request)

    result, _ = window(connect, answer)
    assert len(result.pull_requests) == 60


def issue(number: int, created: str, **known):
    return {
        "id": f"I_{number}",
        "number": number,
        "title": f"Issue {number}",
        "body": "It is slow",
        "createdAt": created,
        "lastEditedAt": None,
        "author": {"login": "ann"},
        "repository": {"nameWithOwner": "demo/project"},
    } | known


def test_labels_and_issues_beyond_the_page_are_completed(connect):
    fake = FakeGitHub([])
    fake.labels = [f"label-{number:03}" for number in range(250)]
    fake.issues = [issue(number, "2025-12-31T00:00:00Z") for number in range(1, 26)]
    fake.pull_requests = [fake.pull_request(99, FEBRUARY.start)]
    (pull_request,) = window(connect, fake)[0].pull_requests
    assert pull_request.labels == tuple(fake.labels)
    assert [linked.number for linked in pull_request.linked_issues] == list(range(1, 26))


def test_labels_that_do_not_add_up_are_asked_again_and_then_fail_the_repository(connect):
    fake = FakeGitHub([])
    fake.labels = ["a", "b"]
    fake.pull_requests = [fake.pull_request(99, FEBRUARY.start)]
    fake.pull_requests[0]["labels"]["nodes"].pop()
    assert window(connect, fake)[0].pull_requests[0].labels == ("a", "b")

    def lose(body, call):
        if "node" in body["data"]:
            body["data"]["node"]["labels"]["nodes"].pop()

    with pytest.raises(ItemFailure, match="1 of 2 labels"):
        window(connect, altered(fake, lose))


def test_nothing_of_an_issue_that_was_written_after_the_merge_is_taken(connect):
    fake = FakeGitHub([])
    merged = datetime(2026, 2, 10, tzinfo=UTC)
    fake.issues = [
        issue(1, "2026-02-01T00:00:00Z"),
        issue(2, "2026-02-10T00:00:00Z"),
        issue(3, "2026-02-01T00:00:00Z", body="Fixed by caching", lastEditedAt="2026-02-11T00:00:00Z"),
    ]
    fake.edits = [
        {"editedAt": "2026-02-11T00:00:00Z", "diff": "Fixed by caching"},
        {"editedAt": "2026-02-02T00:00:00Z", "diff": "Still slow"},
        {"editedAt": "2026-02-01T00:00:00Z", "diff": "Slow"},
    ]
    fake.pull_requests = [fake.pull_request(9, merged)]
    (pull_request,) = window(connect, fake)[0].pull_requests
    assert [(linked.number, linked.body) for linked in pull_request.linked_issues] == [
        (1, "It is slow"),
        (3, "Still slow"),
    ]


def test_two_runs_of_a_month_are_equal(connect):
    assert window(connect, FakeGitHub.spread(120)) == window(connect, FakeGitHub.spread(120))
