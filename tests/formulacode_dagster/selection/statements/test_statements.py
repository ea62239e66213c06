from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from importlib import resources

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.links import Link, LinkWalk, ThreadComment
from formulacode_dagster.models.problem import BranchCommit
from formulacode_dagster.models.pull_request import LinkedIssue, PullRequest
from formulacode_dagster.selection.statements.checks import nothing_leaks
from formulacode_dagster.selection.statements.statements import state_problem
from formulacode_dagster.selection.statements.writing import TEMPLATE, TEMPLATE_VERSION

MakePullRequest = Callable[..., PullRequest]


def issue(number: int, day: int = 1, title: str = "Merge is slow", body: str = "It takes 3 s.") -> LinkedIssue:
    created_at = datetime(2025, 11, day, tzinfo=UTC)
    return LinkedIssue(
        repository="acme/wheels", number=number, title=title, body=body, author="roadrunner", created_at=created_at
    )


def test_without_an_issue_the_minimal_statement_is_all_there_is(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(title="Use a frozenset in merge", body="A set is faster.")
    statement = state_problem(pr.facts, patch=patch, repository_description="Wheels for everybody").statement
    assert statement.final_md == statement.statement_minimal
    assert (statement.statement_issue, statement.issues, statement.left_out) == (None, (), ())
    assert statement.final_md.startswith(
        "# Make acme/wheels faster\n\nThe repository `acme/wheels` (Wheels for everybody)"
    )
    assert "set" not in statement.final_md.replace("must stay", "")
    assert statement.template_version == TEMPLATE_VERSION


def test_issues_tell_the_symptom_and_people_are_nobody(make_pull_request: MakePullRequest, patch: bytes) -> None:
    pr = make_pull_request(issues=[issue(5, body="@Wile-E, it takes 3 s. See #77.\n- [x] searched")])
    statement = state_problem(pr.facts, patch=patch).statement
    assert statement.final_md == statement.statement_issue
    assert statement.final_md.startswith(statement.statement_minimal)
    assert statement.final_md.endswith("### Merge is slow\n\n@user1, it takes 3 s. See [link withheld].\n")
    assert statement.issues == ("acme/wheels#5",)


def test_an_issue_that_holds_a_line_of_the_solution_is_left_out_whole(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    telling = issue(
        6, title="Merge could be faster", body="Make it\n\n```python\nwanted = frozenset(keys)\n```\nas I do."
    )
    statement = state_problem(make_pull_request(issues=[issue(5), telling]).facts, patch=patch).statement
    assert statement.issues == ("acme/wheels#5",)
    assert "could be faster" not in statement.final_md
    assert {leak.where for leak in statement.left_out} == {"acme/wheels#6"}
    assert [(leak.kind, leak.span) for leak in statement.left_out] == [
        ("line", "wanted = frozenset(keys)"),
        ("identifier", "frozenset"),
        ("identifier", "wanted"),
    ]
    alone = state_problem(make_pull_request(issues=[telling]).facts, patch=patch).statement
    assert (alone.statement_issue, alone.final_md) == (None, alone.statement_minimal)


@pytest.mark.parametrize(
    "heading", ["Proposed fix", "Possible solution:", "Describe the solution you'd like", "Root cause", "SUGGESTION"]
)
def test_a_section_that_proposes_a_fix_is_no_symptom(
    make_pull_request: MakePullRequest, patch: bytes, heading: str
) -> None:
    body = f"It takes 3 s.\n\n## {heading}\n\nRemove this check\n\n### Why\n\nno need\n\n## Versions\n\n2.0"
    final = state_problem(make_pull_request(issues=[issue(5, body=body)]).facts, patch=patch).statement.final_md
    assert final.endswith("It takes 3 s.\n\n## Versions\n\n2.0\n")


@pytest.mark.parametrize("heading", ["Is there a solution or workaround?", "Expected behavior", "Fixture", "Solver"])
def test_other_sections_stay(make_pull_request: MakePullRequest, patch: bytes, heading: str) -> None:
    body = f"## {heading}\n\nIt should be fast\n"
    assert (
        heading in state_problem(make_pull_request(issues=[issue(5, body=body)]).facts, patch=patch).statement.final_md
    )


def test_an_issue_that_quotes_the_slow_code_is_shown(make_pull_request: MakePullRequest, patch: bytes) -> None:
    slow = issue(5, body="`return [row for row in rows if row.key in keys]` takes 3 s.")
    assert state_problem(make_pull_request(issues=[slow]).facts, patch=patch).statement.issues == ("acme/wheels#5",)


def test_a_walk_takes_the_place_of_the_stored_issues_and_is_kept(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    walk = LinkWalk(title="Cache keys", body="Solved by a cache", links=(Link(**issue(6).model_dump(), distance=2),))
    statement = state_problem(make_pull_request(issues=[issue(5)]).facts, patch=patch, walk=walk).statement
    assert (statement.issues, statement.walk) == (("acme/wheels#6",), walk)
    assert "ache" not in statement.final_md


def test_a_description_that_is_the_solution_fails_the_item(make_pull_request: MakePullRequest, patch: bytes) -> None:
    with pytest.raises(ItemFailure, match="minimal statement") as failure:
        state_problem(make_pull_request().facts, patch=patch, repository_description="wanted = frozenset(keys)")
    assert failure.value.kind == "leak"


def test_what_issues_tell_only_together_is_left_out(make_pull_request: MakePullRequest, patch: bytes) -> None:
    titles = ("result = np", "dot(values,", "self.weight[values])")
    parts = [issue(number, title=title, body="") for number, title in enumerate(titles, start=5)]
    statement = state_problem(make_pull_request(issues=parts).facts, patch=patch).statement
    assert (statement.statement_issue, statement.issues) == (None, ())
    assert {leak.where for leak in statement.left_out} == {"statement_issue"}


def test_an_issue_that_only_the_check_of_the_month_objects_to_is_left_out(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    pr = make_pull_request(issues=[issue(5), issue(6, body="It takes 3 s in zbbbbbbbz.")])
    stated = state_problem(pr.facts, patch=patch)
    assert stated.statement.issues == ("acme/wheels#5",)
    assert [(leak.kind, leak.where) for leak in stated.statement.left_out] == [("hash", "acme/wheels#6")]
    assert nothing_leaks([(stated.statement, pr.facts, patch)]).passed
    # texts of a model are judged by both, too
    assert [leak.where for leak in stated.judge("zbbbbbbbz", "a text")] == ["a text"]
    with pytest.raises(ItemFailure, match="minimal statement"):
        state_problem(pr.facts, patch=patch, repository_description="zbbbbbbbz")


def test_the_version_moves_with_the_template() -> None:
    template = resources.files("formulacode_dagster.selection.statements") / "templates" / TEMPLATE
    digest = hashlib.sha256(template.read_bytes()).hexdigest()[:12]
    assert (TEMPLATE_VERSION, digest) == ("7", "fdbaf61eb060")


def test_a_name_of_the_patch_is_no_leak_where_the_base_knows_it(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    asked: list[set[str]] = []

    def at_base(names: Collection[str]) -> frozenset[str]:
        asked.append(set(names))
        return frozenset(names)

    facts = make_pull_request(issues=[issue(5, body="`frozenset(rows)` fails in merge")]).facts
    statement = state_problem(facts, patch=patch, names_at_base=at_base).statement
    assert (statement.issues, statement.names_at_base) == (("acme/wheels#5",), ("frozenset",))
    assert state_problem(facts, patch=patch, names_at_base=lambda _: frozenset()).statement.issues == ()
    quiet = make_pull_request(issues=[issue(5)]).facts
    assert state_problem(quiet, patch=patch, names_at_base=at_base).statement.issues == ("acme/wheels#5",)
    assert asked == [{"frozenset"}]


def test_the_base_is_asked_for_names_in_other_readings_too(make_pull_request: MakePullRequest, patch: bytes) -> None:
    facts = make_pull_request(issues=[issue(5, body="The dot frozenset of both takes 3 s")]).facts
    assert state_problem(facts, patch=patch, names_at_base=lambda _: frozenset()).statement.issues == ()
    assert state_problem(facts, patch=patch, names_at_base=frozenset).statement.names_at_base == ("frozenset",)
    assert state_problem(facts, patch=patch, names_at_base=frozenset).statement.issues == ("acme/wheels#5",)


def test_the_name_of_a_repository_is_no_leak_if_a_patch_writes_it_first(
    make_pull_request: MakePullRequest, patch: bytes
) -> None:
    importing = patch.replace(b" import wheels", b" import tables").replace(b"+from functools", b"+from wheels.cache")
    facts = make_pull_request().facts
    with pytest.raises(ItemFailure, match="'wheels'"):
        state_problem(facts, patch=importing, names_at_base=lambda _: frozenset())
    assert state_problem(facts, patch=importing, names_at_base=frozenset).statement.names_at_base == ("wheels",)


def test_who_signed_the_pull_request_is_known_by_name(make_pull_request: MakePullRequest, patch: bytes) -> None:
    body = "Faster.\n\nCo-authored-by: Wilhelmina Coyote <minnie@acme.example>"
    pr = make_pull_request(body=body, issues=[issue(5, body="As Wilhelmina Coyote said, it takes 3 s.")])
    final = state_problem(pr.facts, patch=patch).statement.final_md
    assert "Coyote" not in final
    assert "said, it takes 3 s." in final


COMMIT = BranchCommit(
    sha="0ddba11" + "c" * 33,
    message="Probe keys\n\nEvery lookup went through all of the keys before this change was made.\n\n"
    "Co-authored-by: Pepe Le Pew <pepe@acme.example>",
    people=("Wilhelmina Coyote", "minnie@acme.example"),
)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("prose", "They say every lookup went through all of the keys before this"),
        ("later_comment", "They say that a set of keys can be probed in constant time"),
        ("hash", "It is in 0ddba11c already"),
    ],
)
def test_what_commits_and_later_comments_say_no_text_may_say(
    make_pull_request: MakePullRequest, patch: bytes, kind: str, text: str
) -> None:
    pr = make_pull_request()
    later = ThreadComment(
        author="eve", body="A set of keys can be probed in constant time!", created_at=pr.facts.merged_at
    )
    walk = LinkWalk(links=(Link(**issue(6).model_dump()),), later=(later,))
    stated = state_problem(pr.facts, patch=patch, walk=walk, commits=[COMMIT])
    assert stated.statement.commits == (COMMIT,)
    assert {leak.kind for leak in stated.judge(text, "a text")} == {kind}
    # an earlier issue had it from no one
    knowing = walk.model_copy(update={"links": (Link(**issue(6, body=text).model_dump()),)})
    assert state_problem(pr.facts, patch=patch, walk=knowing, commits=[COMMIT]).statement.issues == ("acme/wheels#6",)


def test_whom_commits_name_is_nobody_by_name_mail_and_trailer(make_pull_request: MakePullRequest, patch: bytes) -> None:
    told = "Wilhelmina\nCoyote (minnie@acme.example) and Pepe Le Pew said it takes 3 s."
    pr = make_pull_request(issues=[issue(5, body=told)])
    final = state_problem(pr.facts, patch=patch, commits=[COMMIT]).statement.final_md
    assert not [name for name in ("Wilhelmina", "Coyote", "minnie", "Pepe", "Pew") if name in final]
    assert "said it takes 3 s." in final
