"""Labels of a merged pull request and the issues it closes: all of them, and nothing written after the merge."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.formulacode_dagster.sources.github.merged_windows import every, failure, numbers, pages


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


def test_inconsistent_labels_are_asked_again_then_fail_the_repository(world, clock):
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
