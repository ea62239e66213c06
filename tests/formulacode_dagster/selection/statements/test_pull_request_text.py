from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.links import Link, LinkWalk
from formulacode_dagster.models.pull_request import LinkedIssue, PullRequest
from formulacode_dagster.selection.statements.pull_request_text import render_pull_request_text
from formulacode_dagster.selection.statements.solution import leaks
from tests.support.clock import at_most_cpu

MakePullRequest = Callable[..., PullRequest]
DESCRIPTION = "Wheels for everybody"


def issue(number: int, day: int, title: str = "Merge is slow", body: str = "It takes 3 s.") -> LinkedIssue:
    created_at = datetime(2026, 2, day, tzinfo=UTC)
    return LinkedIssue(
        repository="acme/wheels", number=number, title=title, body=body, author="roadrunner", created_at=created_at
    )


def test_the_text_tells_what_is_known(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(body="Merging many keys is slow.", issues=[issue(5, 1)])
    text = render_pull_request_text(pr.facts, repository_description=DESCRIPTION, patch=patch)
    assert text.startswith("# Faster merge\n\nThe repository `acme/wheels` (Wheels for everybody) is")
    assert "## Description\n\nMerging many keys is slow.\n" in text
    assert text.endswith("## Related issues\n\n### Merge is slow\n\nIt takes 3 s.\n")


def test_an_issue_that_gives_the_solution_away_does_not(make_pull_request: MakePullRequest, patch: bytes) -> None:
    body = (
        "@Wile-E, merge is slow. Do\n\n```python\nwanted = frozenset(keys)\n"
        "return [row for row in rows if row.key in wanted]\n```\nwith `from functools import lru_cache`"
    )
    pr = make_pull_request(issues=[issue(5, 1, body=body)], body="Fixes #5, see #77\n- [x] tests")
    text = render_pull_request_text(pr.facts, repository_description="", patch=patch)
    assert leaks(text, patch) == ()
    assert "frozenset" not in text
    assert "lru_cache" not in text
    assert "@user1, merge is slow." in text
    assert "#77" not in text


def test_issues_after_the_merge_are_left_out(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(issues=[issue(5, 1), issue(6, 10, "At the merge"), issue(7, 20, "Regression since")])
    text = render_pull_request_text(pr.facts, repository_description=DESCRIPTION, patch=patch)
    assert "Regression" not in text
    assert "At the merge" not in text


def test_a_walk_gives_the_texts_as_they_stood_and_the_guard_sees_them(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(title="Cache keys", body="Solved with a frozenset, 9 times faster", issues=[issue(5, 1)])
    leaking = "Do `return [row for row in rows if row.key in wanted]`, says @Wile-E"
    found = Link(**issue(6, 1, "Slow", leaking).model_dump(), distance=2)
    walk = LinkWalk(title="Faster merge", body="It was slow.", links=(found,))
    text = render_pull_request_text(pr.facts, patch=patch, walk=walk)
    assert text.startswith("# Faster merge\n")
    assert "It was slow." in text
    assert "frozenset" not in text
    assert leaks(text, patch) == ()
    assert "says @user1" in text


def test_issues_of_ones_own_take_the_place_of_those_that_are_stored(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(issues=[issue(5, 1)])
    assert "### Mine" in render_pull_request_text(pr.facts, patch=patch, issues=[issue(6, 1, "Mine")])
    assert "Related issues" not in render_pull_request_text(pr.facts, patch=patch, issues=[])


def test_names_are_kept_where_nobody_asks_to_take_them_out(make_pull_request: MakePullRequest, patch: bytes) -> None:
    text = render_pull_request_text(make_pull_request(body="as @eve says").facts, patch=patch, anonymize=False)
    assert "as @eve says" in text
    assert "@user1" not in text


def test_whoever_signs_has_no_name_elsewhere_either(make_pull_request: MakePullRequest, patch: bytes) -> None:
    body = "Jane Coyote saw that it is slow.\n\nCo-authored-by: Jane Coyote <jane@acme.example>"
    text = render_pull_request_text(make_pull_request(body=body).facts, patch=patch)
    assert "saw that it is slow." in text
    assert "Coyote" not in text


def test_a_pull_request_that_says_nothing_gives_a_statement_all_the_same(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(title="Dev", body="<!-- describe -->\n- [ ] tests\n")
    text = render_pull_request_text(pr.facts, repository_description="", patch=patch)
    assert text.startswith("# Dev\n")
    assert "Nothing more is known than the title." in text
    assert text.endswith("title.\n")


def test_a_title_that_is_the_solution_is_replaced(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(title="`wanted = frozenset(keys)` (#77)")
    text = render_pull_request_text(pr.facts, repository_description="", patch=patch)
    assert text.startswith("# Improve the performance of acme/wheels\n")


def test_the_number_at_the_end_of_a_title_goes(make_pull_request: MakePullRequest, patch: bytes) -> None:
    text = render_pull_request_text(make_pull_request("Faster (#77)").facts, repository_description="", patch=patch)
    assert text.startswith("# Faster\n")


@pytest.mark.parametrize(
    "body",
    [
        "wan<!-- x -->ted = frozenset(keys)",
        "wanted\\_ = x".replace("\\_ = x", " = fro\u200bzenset(keys)"),
        "wanted = frozen&#115;et(keys)",
        "wanted = frozenset(\n\nkeys)",
        "```\nwanted = frozenset(\n```\n```\nkeys)\n```",
    ],
)
def test_odd_spellings_of_the_solution_are_withheld_too(
    make_pull_request: MakePullRequest, patch: bytes, body: str
) -> None:
    pr = make_pull_request(body=f"First.\n\n{body}\n\nLast.")
    text = render_pull_request_text(pr.facts, repository_description="", patch=patch)
    assert leaks(text, patch) == ()


def test_markdown_is_not_escaped(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(body='`a < b && c > "d"` {{ title }}')
    assert '`a < b && c > "d"` {{ title }}' in render_pull_request_text(
        pr.facts, repository_description="", patch=patch
    )


@pytest.mark.parametrize(
    "piece",
    [
        "`",
        "``` ",
        "[",
        "<!-",
        "Aa ",
        "a.",
        " ",
        "@a ",
        "#7 ",
        "> ",
        "- [ ",
        "wanted ",
        "https://github.com/",
        "/home/",
        "<a",
    ],
)
def test_a_hostile_body_takes_no_time(make_pull_request: MakePullRequest, patch: bytes, piece: str) -> None:
    body = piece * (65_536 // len(piece)) + "x"
    with at_most_cpu(5):
        render_pull_request_text(make_pull_request(body=body).facts, repository_description="", patch=patch)
