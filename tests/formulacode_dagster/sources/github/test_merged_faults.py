"""Answers that fail, are cut or tell too much: the repository at fault fails by name, and no other."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.cancellation.clock import Clock
from formulacode_dagster.sources.github.queries import PROBE
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.pacing import Pacing
from sandbox.github import Fault, Faults, Limits, app
from sandbox.server import serving
from tests.formulacode_dagster.sources.github.merged_windows import every, failure, numbers, pages
from tests.support.github import CALM, TOKEN


def test_a_null_repository_is_asked_again_then_fails_by_itself(world, clock):
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


def test_a_short_search_fails_only_the_repository_it_lacks(world, clock):
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


def test_a_refused_request_fails_only_the_repository_at_fault(world, clock):
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


def test_a_missing_field_has_no_default_and_fails_its_repository(world, clock):
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


TOO_HEAVY = {"data": None, "errors": [{"type": "RESOURCE_LIMITS_EXCEEDED", "message": "Resource limits exceeded"}]}


@pytest.mark.parametrize("refused", [httpx.Response(502), httpx.Response(200, json=TOO_HEAVY)], ids=["502", "limits"])
def test_a_page_too_heavy_for_github_is_asked_in_smaller_ones(world, clock, refused):
    world.merge("demo/p", every(600, 60))
    world.merge("demo/q", every(600, 20))

    def heavy(operation, variables, body, call):
        return refused if sum(size for name, size in variables.items() if "first" in name) > 30 else None

    p, q = world.taken_in(world.rows(), clock, change=heavy)
    assert (len(numbers(p)), len(numbers(q))) == (60, 20)


def test_after_a_slow_page_the_next_ones_are_shorter(world, clock):
    world.merge("demo/p", every(600, 260))
    asked: list[int] = []

    def slow(operation, variables, body, call):
        if operation == "MergedPullRequests":
            asked.append(variables["first0"])
            clock.now += 6 if asked[-1] > 50 else 1

    (end,) = world.taken_in(world.rows(), clock, change=slow)
    assert len(numbers(end)) == 260
    assert asked == [100, 50, 50, 50, 10]


def test_a_github_that_computes_for_a_minute_a_minute_is_never_overworked(world):
    world.merge("demo/p", every(600, 3))
    world.rows()
    limits = Limits(graphql_seconds=0.6)
    faults = Faults(work_seconds=0.05)

    def hits(pacing: Pacing) -> int:
        application = app(world.folder, limits=limits, faults=faults)

        class Hurried(Clock):
            """Real time, of which waits are skipped, here and there."""

            ahead = 0.0

            def time(self) -> float:
                return super().time() + self.ahead

            async def sleep(self, seconds: float) -> None:
                self.ahead += seconds
                application.state.gateway.put_forward(seconds)
                await super().sleep(0)

        async def ask(url: str) -> int:
            async with GitHubTransport(url, [TOKEN], clock=Hurried(), pacing=pacing) as client:
                # one after another: a wait that is skipped would let a request in flight arrive late
                for _ in range(30):
                    await client.graphql(PROBE)
                return client.totals.limit_hits

        with serving(application) as url:
            return asyncio.run(ask(url))

    assert hits(CALM) > 0
    assert hits(replace(CALM, graphql_seconds=0.3)) == 0, "half of what it allows, for a busy machine"


def test_exhausted_limits_are_waited_for(world, clock):
    world.merge("demo/p", every(600, 5))
    (end,) = world.taken_in(world.rows(), clock, faults=Faults.at("graphql", 2, Fault.PRIMARY_LIMIT))
    assert len(numbers(end)) == 5
    assert clock.slept


def test_a_dead_github_ends_every_window_with_one_error(world, clock):
    world.merge("demo/p", every(600, 3))
    world.merge("demo/q", every(600, 3))

    def dead(operation, variables, body, call):
        return httpx.Response(502)

    p, q = world.taken_in(world.rows(), clock, change=dead)
    assert isinstance(p, OutsideSystemError)
    assert p is q


def test_a_page_size_that_github_could_answer_is_remembered(world, clock):
    """Pages above 30 exceed the resource limits; the first sound answers lack a pull request, so all is asked again."""
    world.merge("demo/heavy", every(600, 50))
    world.merge("demo/light", every(600, 40))
    asked: list[int] = []

    def heavy(operation, variables, body, call):
        if operation != "MergedPullRequests":
            return None
        size = sum(value for name, value in variables.items() if name.startswith("first"))
        asked.append(size)
        if size > 30:
            return {"data": None, "errors": [{"type": "RESOURCE_LIMITS_EXCEEDED", "message": "Resource limits"}]}
        if len(asked) < 6:
            for _, nodes in pages(body):
                del nodes[:1]
        return None

    ends = world.taken_in(world.rows(), clock, change=heavy)
    assert [len(numbers(end)) for end in ends] == [50, 40]
    # together, then each by itself: no size twice, although all is requested again
    assert [size for size in asked if size > 30] == [90, 50, 40]
    assert len(asked) == 9
