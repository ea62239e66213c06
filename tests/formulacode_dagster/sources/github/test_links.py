"""The walk over real HTTP, in small worlds that hold every trap we know of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.links import LinkWalk, ThreadKind
from formulacode_dagster.sources.github.links import walk_links
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from sandbox.github import Fault, Faults, Limits, ScriptedFault, app
from sandbox.server import serving
from tests.support.github import CALM

HOME = "acme/wheels"
MERGED = "2026-02-10T12:00:00Z"
BEFORE, AFTER = "2026-02-01T00:00:00Z", "2026-02-11T00:00:00Z"
Walk = Callable[..., LinkWalk]


def pull(number: int = 77, body: str = "", **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "title": "Faster merge",
        "body": body,
        "author": "ada",
        "created_at": BEFORE,
        "merged_at": MERGED,
    } | more


def issue(number: int, body: str = "", **more: Any) -> dict[str, Any]:
    return {"number": number, "title": f"Issue {number}", "body": body, "author": "eve", "created_at": BEFORE} | more


def comment(body: str, at: str = BEFORE, **more: Any) -> dict[str, Any]:
    return {"author": "bob", "body": body, "created_at": at} | more


@pytest.fixture
def walked(github_folder, clock):
    """Walk from `acme/wheels#77` in a world of *facts*; the sandbox's books are left in `walked.books`."""

    def walk(facts: Mapping[str, Any], *, served: Mapping[str, Any] | None = None, **options: Any) -> LinkWalk:
        folder = github_folder(facts)

        async def ask(url: str) -> LinkWalk:
            async with GitHubTransport(url, ["token"], clock=clock, pacing=CALM) as client:
                return await walk_links(client, HOME, 77, **options)

        with serving(app(folder, **(served or {}))) as url:
            found = asyncio.run(ask(url))
            walk.books = httpx.get(f"{url}/_sandbox/calls").json()
        return found

    return walk


def alone(*issues: dict[str, Any], pulls: tuple[dict[str, Any], ...] = (), **root: Any) -> dict[str, Any]:
    return {HOME: {"issues": issues, "pull_requests": [pull(**root), *pulls]}}


def names(walk: LinkWalk) -> list[str]:
    return [f"{link.repository}#{link.number}@{link.distance}" for link in walk.links]


def test_the_walk_goes_nearest_first_and_closed_issues_lead(walked: Walk):
    found = walked(
        alone(
            issue(1, "as #5"),
            issue(2, "see GH-6 and `#7`"),
            issue(3),
            issue(4, "noticed in #77"),
            issue(5),
            issue(6, "deeper: #7"),
            issue(7),
            body="See #2. Fixes #1. #77",
            comments=[comment("like #3")],
        )
    )
    wanted = ["acme/wheels#1@1", "acme/wheels#2@1", "acme/wheels#3@1", "acme/wheels#4@1"]
    assert names(found) == [*wanted, "acme/wheels#5@2", "acme/wheels#6@2"]
    assert (found.unreadable, found.left_out, found.partly_read) == ((), 0, ())
    assert found.links[1].body == "see GH-6 and `#7`"


def test_depth_and_limit_are_kept(walked: Walk):
    facts = alone(
        *(issue(number, f"#{number + 1}") for number in range(1, 10)),
        issue(10),
        body=" ".join(map("#{}".format, (1, 4))),
    )
    assert names(walked(facts, depth=1)) == ["acme/wheels#1@1", "acme/wheels#4@1"]


def test_a_chain_is_followed_as_far_as_asked(walked: Walk):
    facts = alone(*(issue(number, f"#{number + 1}") for number in range(1, 20)), body="#1")
    assert names(walked(facts)) == ["acme/wheels#1@1", "acme/wheels#2@2"]


def test_more_than_six_are_counted_and_the_second_level_is_not_asked_for(walked: Walk):
    facts = alone(
        *(issue(number, "#90") for number in range(1, 10)), issue(90), body=" ".join(f"#{n}" for n in range(1, 10))
    )
    found = walked(facts)
    assert [link.number for link in found.links] == [1, 2, 3, 4, 5, 6]
    assert found.left_out == 3
    assert walked.books["endpoints"]["graphql Threads"] == 2


def test_circles_and_references_to_itself_end(walked: Walk):
    found = walked(
        alone(issue(1, "#2 #1 #77"), issue(2, "#1 acme/wheels#2"), body="#1 #77 acme/wheels#77 ACME/WHEELS#1")
    )
    assert names(found) == ["acme/wheels#1@1", "acme/wheels#2@2"]


def test_nothing_written_after_the_merge_is_taken(walked: Walk):
    found = walked(
        alone(
            issue(
                1,
                "It is slow.",
                edits=[{"edited_at": AFTER, "body": "Solved by caching, see #5"}],
                titles=[
                    {"edited_at": BEFORE, "title": "Merge is slow"},
                    {"edited_at": AFTER, "title": "Cache the merge"},
                ],
                comments=[
                    comment("first", edits=[{"edited_at": AFTER, "body": "the fix was #6"}]),
                    comment("the fix was #6", AFTER),
                    comment("the fix was #6", MERGED),
                ],
            ),
            issue(2, "kept by an edit: #4", edits=[{"edited_at": BEFORE, "body": "first: #3"}]),
            issue(3),
            issue(4),
            issue(5),
            issue(6),
            issue(8, "after #77", created_at=AFTER),
            issue(9, "at #77", created_at=MERGED),
            body="#1 #2 #8",
            edits=[{"edited_at": AFTER, "body": "#1 #2 #8 #5, which was 40 times slower"}],
            titles=[{"edited_at": AFTER, "title": "Cache the merge"}],
        )
    )
    assert names(found) == ["acme/wheels#1@1", "acme/wheels#2@1", "acme/wheels#3@2"]
    assert (found.title, found.body) == ("Faster merge", "#1 #2 #8")
    first = found.links[0]
    assert (first.title, first.body) == ("Merge is slow", "It is slow.")
    assert [(comment.author, comment.body) for comment in first.comments] == [("bob", "first")]


def test_what_was_said_on_it_and_later_on_its_issues_is_kept_apart(walked: Walk):
    found = walked(
        alone(
            issue(
                1,
                comments=[
                    comment("early"),
                    comment("edited", edits=[{"edited_at": AFTER, "body": "edited: a cache did it"}]),
                    comment("a table did it", AFTER),
                ],
            ),
            body="#1",
            comments=[comment("looks good"), comment("thanks", AFTER)],
        )
    )
    assert {each.body for each in found.links[0].comments} == {"early", "edited"}
    assert [each.body for each in found.later] == ["thanks", "looks good", "edited: a cache did it", "a table did it"]
    assert walked.books["endpoints"]["graphql Threads"] == 2


def test_a_version_that_was_deleted_is_empty_and_never_a_later_one(walked: Walk):
    edits = [
        {"edited_at": "2026-02-05T00:00:00Z", "body": "#2", "deleted_at": AFTER},
        {"edited_at": AFTER, "body": "the solution #3"},
    ]
    found = walked(alone(issue(1, "#4", edits=edits), issue(2), issue(3), issue(4), body="#1"))
    assert names(found) == ["acme/wheels#1@1"]
    assert found.links[0].body == ""


def test_a_mention_after_the_merge_does_not_lead_back_to_what_mentions(walked: Walk):
    revert = pull(80, "Reverts #77, see #2", created_at=AFTER, merged_at="2026-02-12T00:00:00Z")
    found = walked(
        alone(
            issue(1, comments=[comment("made fast in #77", AFTER)]),
            issue(2),
            issue(3, "before", comments=[comment("will be fast with #77")]),
            pulls=(revert,),
        ),
        only_issues=False,
    )
    assert names(found) == ["acme/wheels#3@1"]


def test_pull_requests_are_walked_through_and_returned_on_request(walked: Walk):
    earlier = pull(50, "Fixes #2", merged_at="2026-02-02T00:00:00Z")
    facts = alone(issue(2, "the cause"), pulls=(earlier,), body="follows #50")
    assert names(walked(facts)) == ["acme/wheels#2@2"]


def test_pull_requests_are_returned_with_their_kind(walked: Walk):
    earlier = pull(50, "Fixes #2", merged_at="2026-02-02T00:00:00Z")
    found = walked(alone(issue(2), pulls=(earlier,), body="follows #50"), only_issues=False)
    assert [(link.number, link.kind) for link in found.links] == [(50, ThreadKind.PULL_REQUEST), (2, ThreadKind.ISSUE)]


def test_renamed_repositories_and_transferred_issues_are_the_same(walked: Walk):
    facts = alone(
        issue(1, "old/loom#5 and new/loom#5 and https://github.com/new/loom/issues/5#issuecomment-1"),
        body="old/loom#5 #4 #1",
    )
    facts[HOME]["transferred"] = {4: "new/loom#6"}
    facts["new/loom"] = {"former_names": ["old/loom"], "issues": [issue(5), issue(6)]}
    assert names(walked(facts)) == ["new/loom#5@1", "new/loom#6@1", "acme/wheels#1@1"]


def test_what_cannot_be_read_is_recorded_and_the_rest_goes_on(walked: Walk):
    facts = alone(issue(1), body="#404 nobody/nothing#1 gone/away#2 secret/plans#3 #1")
    facts["gone/away"] = {"is_gone": True, "issues": [issue(2)]}
    facts["secret/plans"] = {"is_private": True, "issues": [issue(3, "not for everybody")]}
    found = walked(facts)
    assert names(found) == ["acme/wheels#1@1"]
    assert [(link.name, link.reason) for link in found.unreadable] == [
        ("acme/wheels#404", "not_found"),
        ("nobody/nothing#1", "not_found"),
        ("gone/away#2", "not_found"),
        ("secret/plans#3", "private"),
    ]


def test_a_link_set_by_hand_after_the_merge_is_not_there_yet(walked: Walk):
    # the sandbox dates a hand-made link by the younger of its two ends
    found = walked(alone(issue(1), issue(2, created_at=AFTER), closes=[1, 2]))
    assert names(found) == ["acme/wheels#1@1"]


@pytest.mark.slow
def test_ten_thousand_references_are_fifty_questions_in_one_request(walked: Walk):
    found = walked(alone(*(issue(n) for n in range(1, 3)), body=" ".join(f"#{n}" for n in range(1, 10_001))))
    assert names(found) == ["acme/wheels#1@1", "acme/wheels#2@1"]
    assert len(found.unreadable) == 48
    # the pull request itself is among the numbers
    assert found.left_out == 10_000 - 1 - 50
    books = walked.books
    assert books["endpoints"]["graphql Threads"] == 2
    assert books["points"]["graphql"] <= 4
    assert books["total"] == 2


def test_a_usual_walk_costs_three_requests_and_three_points(walked: Walk):
    walked(alone(issue(1, "#2"), issue(2), body="Fixes #1"))
    assert (walked.books["total"], walked.books["points"]) == (3, {"graphql": 3})


def test_edits_cost_one_request_more_for_each_level_that_has_any(walked: Walk):
    later = [{"edited_at": AFTER, "body": "later"}]
    walked(
        alone(*(issue(n, edits=later, comments=[comment("x", edits=later)] * 3) for n in (1, 2, 3)), body="#1 #2 #3")
    )
    assert walked.books["endpoints"] == {"graphql": 3, "graphql Threads": 2, "graphql BodyVersions": 1}


def test_comments_beyond_a_hundred_are_read(walked: Walk):
    many = [comment(f"{n}", f"2026-02-02T00:{n // 60:02d}:{n % 60:02d}Z") for n in range(250)]
    found = walked(alone(issue(1, comments=[*many, comment("#2", "2026-02-03T00:00:00Z")]), issue(2), body="#1"))
    assert names(found) == ["acme/wheels#1@1", "acme/wheels#2@2"]
    assert [comment.body for comment in found.links[0].comments] == [*map(str, range(250)), "#2"]
    assert found.partly_read == ()


def test_pages_of_comments_after_the_merge_are_not_asked_for(walked: Walk):
    many = [comment(f"{n}", AFTER) for n in range(350)]
    found = walked(alone(issue(1, comments=many), body="#1"))
    assert found.links[0].comments == ()
    assert "graphql ThreadComments" not in walked.books["endpoints"]


def test_a_thread_without_end_is_read_in_part_and_named(walked: Walk):
    many = [comment(f"{n}") for n in range(1_050)]
    found = walked(alone(issue(1, comments=many), body="#1"))
    assert len(found.links[0].comments) == 1_000
    assert found.partly_read == ("acme/wheels#1",)


def test_threads_too_heavy_together_are_read_in_parts(walked: Walk):
    heavy = [issue(n, "x" * 3_000) for n in range(1, 5)]
    found = walked(alone(*heavy, body="#1 #2 #3 #4"), served={"limits": Limits(heaviest_answer=8_000)})
    assert [link.number for link in found.links] == [1, 2, 3, 4]


@pytest.mark.slow
def test_one_thread_too_heavy_alone_is_unreadable(walked: Walk):
    facts = alone(issue(1, "x" * 9_000), issue(2), body="#1 #2")
    found = walked(facts, served={"limits": Limits(heaviest_answer=8_000)})
    assert [link.number for link in found.links] == [2]
    assert [(link.name, link.reason) for link in found.unreadable] == [("acme/wheels#1", "overloaded")]


@pytest.mark.parametrize(
    "fault", [Fault.BAD_GATEWAY, Fault.SECONDARY_LIMIT, Fault.TRUNCATED, Fault.RESET, Fault.NULL_NODE]
)
def test_a_passing_fault_at_every_request_changes_nothing(walked: Walk, fault):
    facts = alone(issue(1, "#2", comments=[comment("a"), comment("b")]), issue(2), body="Fixes #1")
    scripted = [ScriptedFault(endpoint="graphql Threads", call=call, fault=fault) for call in (1, 3, 5)]
    found = walked(facts, served={"faults": Faults(scripted=tuple(scripted))})
    assert names(found) == ["acme/wheels#1@1", "acme/wheels#2@2"]
    assert (found.unreadable, found.partly_read) == ((), ())


def test_a_dead_github_is_no_missing_link(walked: Walk):
    with pytest.raises(OutsideSystemError):
        walked(alone(body="#1"), served={"faults": Faults(chances={Fault.BAD_GATEWAY: 1.0})})


def test_a_pull_request_that_is_not_there_fails_by_name(walked: Walk):
    with pytest.raises(ItemFailure, match="acme/wheels#77") as failure:
        walked({HOME: {"pull_requests": [pull(78)]}})
    assert failure.value.kind == "vanished"


def test_an_issue_has_no_walk(walked: Walk):
    with pytest.raises(ItemFailure, match="is an issue"):
        walked({HOME: {"issues": [issue(77)], "pull_requests": [pull(78)]}})


def test_another_moment_may_take_the_place_of_the_merge(walked: Walk):
    facts = alone(issue(1, created_at="2026-02-05T00:00:00Z"), issue(2), body="#1 #2")
    assert names(walked(facts, before=datetime(2026, 2, 4, tzinfo=UTC))) == ["acme/wheels#2@1"]
