from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import resources

import pytest

from formulacode_dagster.models.links import Link, LinkWalk
from formulacode_dagster.models.pull_request import LinkedIssue, PullRequest
from formulacode_dagster.problems.render import TEMPLATE, TEMPLATE_VERSION, render_problem_statement
from formulacode_dagster.problems.solution import leaks

MakePullRequest = Callable[..., PullRequest]
DESCRIPTION = "Wheels for everybody"


def issue(number: int, day: int, title: str = "Merge is slow", body: str = "It takes 3 s.") -> LinkedIssue:
    created_at = datetime(2026, 2, day, tzinfo=UTC)
    return LinkedIssue(
        repository="acme/wheels", number=number, title=title, body=body, author="roadrunner", created_at=created_at
    )


def test_a_statement_tells_what_is_known(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(body="Merging many keys is slow.", issues=[issue(5, 1)])
    statement = render_problem_statement(pr.facts, repository_description=DESCRIPTION, patch=patch)
    assert statement.text.startswith("# Faster merge\n\nThe repository `acme/wheels` (Wheels for everybody) is")
    assert "## Description\n\nMerging many keys is slow.\n" in statement.text
    assert statement.text.endswith("## Related issues\n\n### Merge is slow\n\nIt takes 3 s.\n")
    assert statement.issues == ("acme/wheels#5",)
    assert statement.withheld_lines == 0
    assert statement.template_version == TEMPLATE_VERSION


def test_an_issue_that_gives_the_solution_away_does_not(make_pull_request: MakePullRequest, patch: bytes) -> None:
    body = (
        "@Wile-E, merge is slow. Do\n\n```python\nwanted = frozenset(keys)\n"
        "return [row for row in rows if row.key in wanted]\n```\nwith `from functools import lru_cache`"
    )
    pr = make_pull_request(issues=[issue(5, 1, body=body)], body="Fixes #5, see #77\n- [x] tests")
    statement = render_problem_statement(pr.facts, repository_description="", patch=patch)
    assert leaks(statement.text, patch) == ()
    assert "frozenset" not in statement.text
    assert "lru_cache" not in statement.text
    assert statement.withheld_lines == 3
    assert "@user1, merge is slow." in statement.text
    assert "#77" not in statement.text


def test_issues_after_the_merge_are_left_out(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(issues=[issue(5, 1), issue(6, 10, "At the merge"), issue(7, 20, "Regression since")])
    statement = render_problem_statement(pr.facts, repository_description=DESCRIPTION, patch=patch)
    assert statement.issues == ("acme/wheels#5",)
    assert "Regression" not in statement.text
    assert "At the merge" not in statement.text


def test_a_walk_gives_the_texts_as_they_stood_and_the_guard_sees_them(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(title="Cache keys", body="Solved with a frozenset, 9 times faster", issues=[issue(5, 1)])
    leaking = "Do `return [row for row in rows if row.key in wanted]`, says @Wile-E"
    found = Link(**issue(6, 1, "Slow", leaking).model_dump(), distance=2)
    walk = LinkWalk(title="Faster merge", body="It was slow.", links=(found,))
    statement = render_problem_statement(pr.facts, patch=patch, walk=walk)
    assert statement.text.startswith("# Faster merge\n")
    assert "It was slow." in statement.text
    assert "frozenset" not in statement.text
    assert leaks(statement.text, patch) == ()
    assert statement.withheld_lines == 1
    assert "says @user1" in statement.text
    assert (statement.issues, statement.walk) == (("acme/wheels#6",), walk)


def test_issues_of_ones_own_take_the_place_of_those_that_are_stored(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(issues=[issue(5, 1)])
    assert render_problem_statement(pr.facts, patch=patch, issues=[issue(6, 1)]).issues == ("acme/wheels#6",)
    assert render_problem_statement(pr.facts, patch=patch, issues=[]).issues == ()


def test_names_are_kept_where_nobody_asks_to_take_them_out(make_pull_request: MakePullRequest, patch: bytes) -> None:
    text = render_problem_statement(make_pull_request(body="as @eve says").facts, patch=patch, anonymize=False).text
    assert "as @eve says" in text
    assert "@user1" not in text


def test_a_pull_request_that_says_nothing_gives_a_statement_all_the_same(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(title="Dev", body="<!-- describe -->\n- [ ] tests\n")
    statement = render_problem_statement(pr.facts, repository_description="", patch=patch)
    assert statement.text.startswith("# Dev\n")
    assert "Nothing more is known than the title." in statement.text
    assert statement.text.endswith("title.\n")


def test_a_title_that_is_the_solution_is_replaced(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(title="`wanted = frozenset(keys)` (#77)")
    statement = render_problem_statement(pr.facts, repository_description="", patch=patch)
    assert statement.text.startswith("# Improve the performance of acme/wheels\n")


def test_the_number_at_the_end_of_a_title_goes(make_pull_request: MakePullRequest, patch: bytes) -> None:
    statement = render_problem_statement(
        make_pull_request("Faster (#77)").facts, repository_description="", patch=patch
    )
    assert statement.text.startswith("# Faster\n")


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
    statement = render_problem_statement(pr.facts, repository_description="", patch=patch)
    assert leaks(statement.text, patch) == ()
    assert statement.withheld_lines >= 1


def test_markdown_is_not_escaped(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(body='`a < b && c > "d"` {{ title }}')
    assert (
        '`a < b && c > "d"` {{ title }}'
        in render_problem_statement(pr.facts, repository_description="", patch=patch).text
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
    started = time.perf_counter()
    render_problem_statement(make_pull_request(body=body).facts, repository_description="", patch=patch)
    assert time.perf_counter() - started < 5


def test_the_version_moves_with_the_template() -> None:
    template = resources.files("formulacode_dagster.problems") / "templates" / TEMPLATE
    digest = hashlib.sha256(template.read_bytes()).hexdigest()[:12]
    assert (TEMPLATE_VERSION, digest) == ("2", "a0dfc6f34bb0")
