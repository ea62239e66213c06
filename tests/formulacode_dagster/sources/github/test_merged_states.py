"""Repositories that are not what discovery saw any more: renamed, closed, archived, emptied, gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.reasons import RejectionReason
from sandbox.github.context import Account
from tests.formulacode_dagster.sources.github.merged_windows import every, failure, numbers, pages
from tests.support.github import FEBRUARY


def test_a_repository_renamed_since_discovery_has_its_present_name(world, clock):
    world.merge("demo/new", every(600, 3), former_names=["demo/old"])
    world.merge("demo/other", every(600, 2))
    renamed, other = world.taken_in(world.rows(new="demo/old"), clock)
    assert numbers(renamed) == [1, 2, 3]
    assert (
        {pull_request.repository for pull_request in renamed.pull_requests}
        == {renamed.count.repository}
        == {"demo/new"}
    )
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


def test_a_repository_archived_within_the_month_keeps_earlier_merges(world, clock):
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


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        ({"is_nameless": True}, "vanished", "its id still resolves, its name does not"),
        ({"is_unindexed": True}, "incomplete", "its own list has 3 more, #1 among them"),
    ],
)
def test_a_repository_of_which_search_finds_nothing_is_no_empty_window(world, clock, facts, kind, words):
    world.merge("demo/lost", every(600, 3), **facts)
    world.merge("demo/there", every(600, 2))
    world.merge("demo/quiet", [])
    lost, quiet, there = world.taken_in(world.rows(), clock)
    assert failure(lost).kind == kind
    assert words in str(lost)
    assert numbers(quiet) == []
    assert numbers(there) == [1, 2]


def test_a_merge_that_search_lacks_is_taken_in_from_the_repositorys_own_list(world, clock):
    world.merge("demo/late", every(600, 5), pull_requests=[{"number": n, "is_unindexed": True} for n in (2, 5)])
    world.merge("demo/there", every(600, 2))
    late, there = world.taken_in(world.rows(), clock)
    assert (numbers(late), late.count.unsearched) == ([1, 2, 3, 4, 5], (2, 5))
    assert (numbers(there), there.count.unsearched) == ([1, 2], ())
    assert world.books["endpoints"]["graphql MergedCounts"] == 3, "an index that is late only is asked again first"
    assert world.books["endpoints"]["graphql NewestMerges"] == 1


def test_a_long_list_is_read_as_far_as_the_month(world, clock):
    """160 merges of the month behind 20 later ones, then 160 earlier ones: a second page, and no third."""
    moments = [*every(600, 160, FEBRUARY.start - timedelta(days=3)), *every(14000, 160), *every(6000, 20, FEBRUARY.end)]
    world.merge("demo/busy", moments, pull_requests=[{"number": 161, "is_unindexed": True}])
    (end,) = world.taken_in(world.rows(), clock)
    assert (numbers(end), end.count.unsearched) == (list(range(161, 321)), (161,))
    assert world.books["endpoints"]["graphql NewestMerges"] == 2


def test_of_an_old_month_one_page_of_the_list_is_read(world, clock):
    world.merge("demo/old", [*every(600, 5), *every(60, 120, FEBRUARY.end + timedelta(days=700))])
    (end,) = world.taken_in(world.rows(), clock)
    assert numbers(end) == [1, 2, 3, 4, 5]
    assert world.books["endpoints"]["graphql NewestMerges"] == 1


def test_an_index_that_is_late_is_asked_again(world, clock):
    world.merge("demo/p", every(600, 3))

    def late(operation, variables, body, call):
        if operation == "MergedCounts" and call == 1:
            body["data"]["c0"]["issueCount"] = 2
        for _, nodes in pages(body) if call == 1 else ():
            body["data"]["s0"] |= {"nodes": nodes[:2], "issueCount": 2}

    (end,) = world.taken_in(world.rows(), clock, change=late)
    assert (numbers(end), end.count.unsearched) == ([1, 2, 3], ())


@pytest.mark.parametrize("merges", [0, 3])
def test_a_list_that_cannot_be_read_confirms_nothing(world, clock, merges):
    world.merge("demo/quiet", every(600, merges))

    def broken(operation, variables, body, call):
        if operation == "NewestMerges":
            body["data"]["r0"] = None

    (end,) = world.taken_in(world.rows(), clock, change=broken)
    assert failure(end).kind == "incomplete"
    assert "is not confirmed" in str(end)


def test_what_one_token_may_not_see_is_requested_with_another(world, clock):
    world.merge("one/p", every(600, 3))
    world.merge("two/q", every(600, 2))
    world.merge("three/r", every(600, 1))
    tokens = {"a" * 40: Account(login="a", forbidden=("two",)), "b" * 40: Account(login="b", forbidden=("one",))}
    ends = world.taken_in(world.rows(), clock, tokens=tokens)
    assert [len(numbers(end)) for end in ends] == [3, 1, 2]


def test_what_no_token_may_see_fails_by_name(world, clock):
    world.merge("one/p", every(600, 3))
    world.merge("two/q", every(600, 2))
    shut, opened = world.taken_in(world.rows(), clock, tokens={"a" * 40: Account(login="a", forbidden=("one",))})
    assert "SAML" in str(failure(shut))
    assert numbers(opened) == [1, 2]
