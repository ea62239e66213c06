from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.links import LinkWalk, ThreadComment
from formulacode_dagster.models.problem import BranchCommit
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest, PullRequest
from formulacode_dagster.selection.statements.checks import nothing_leaks
from formulacode_dagster.selection.statements.second_look import look_again
from tests.records import make_statement

MakePullRequest = Callable[..., PullRequest]
PATCH = b"""\
diff --git a/wheels/core.py b/wheels/core.py
--- a/wheels/core.py
+++ b/wheels/core.py
@@ -1,3 +1,5 @@
 def merge(rows, keys):
-    return [row for row in rows if row.key in keys]
+    key_index = frozenset(keys)
+    ordered = sorted(rows, key=operator.attrgetter("key"))
+    return [row for row in ordered if row.key in key_index]
"""


@pytest.fixture
def facts(make_pull_request: MakePullRequest) -> MergedPullRequest:
    """A pull request that says how it works."""
    earlier = LinkedIssue(
        repository="acme/wheels",
        number=5,
        title="Looking up keys is slow",
        body="It takes three seconds to merge two small tables here.",
        created_at=datetime(2025, 11, 1, tzinfo=UTC),
    )
    body = "We now build a hash set once and probe it.\n\nIt takes three seconds to merge two small tables here."
    return make_pull_request(title="Hash the keys once", body=body, issues=[earlier]).facts


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("line", "Use `key_index = frozenset( keys )`"),
        ("identifier", "Something like a key_index would help"),
        ("identifier", "What about `frozenset`?"),
        ("renamed_line", '```python\nq = sorted(things, key=operator.attrgetter( "key" ))\n```'),
        ("encoded", "a2V5X2luZGV4ID0gZnJvemVuc2V0KGtleXMp"),
        ("encoded", "6b65795f696e646578203d2066726f7a656e736574"),
        ("encoded", "key%5Findex%20%3D%20frozenset%28keys%29"),
        ("encoded", "see https://example.org/?q=key%5Findex"),
        ("encoded", "%73%65%74%73 would do"),
        ("title", "To do: hash the keys, once."),
        ("prose", "Idea: we now build a hash set once, and probe it"),
        ("hash", "It is in bbbbbbb already"),
        ("hash", "see https://example.org/AAAAAAAAAA"),
        ("link", "https://github.com/wile/other/commit/1"),
        ("link", "https://gist.github.com/wile/1"),
        ("link", "as #77 does"),
        ("person", "wile@acme.example knows"),
        ("person", "@wile-e knows"),
    ],
)
def test_a_second_look_sees_what_a_statement_tells(facts: MergedPullRequest, kind: str, text: str) -> None:
    assert kind in {leak.kind for leak in look_again(make_statement(text), facts, PATCH)}


@pytest.mark.parametrize(
    "text",
    [
        "Merging is slow, says @user1: `return [row for row in rows if row.key in keys]`",
        "It takes three seconds to merge two small tables here.",
        "See https://github.com/acme/wheels/issues/5, #5 and #770",
    ],
)
def test_a_second_look_passes_what_was_known_before(facts: MergedPullRequest, text: str) -> None:
    assert look_again(make_statement(text), facts, PATCH) == ()


WORDY = b"""\
diff --git a/wheels/core.py b/wheels/core.py
--- a/wheels/core.py
+++ b/wheels/core.py
@@ -1,2 +1,6 @@
 def merge(rows, keys):
+    # a b c d e f g h i j k l m n o p q r s t u v, w.
+    for place in range(len(rows)):
+        total = float(list(rows)[place])
+    print("sorted(", total)
     return rows
"""


@pytest.mark.parametrize(
    "text",
    [
        "`print(float(list(range(1000))[0]))` is slow, and `sorted(rows)` is not",
        "See https://ru.example.org/wiki/%D0%9F%D1%80%D0%B8%D0%B2%D0%B5%D1%82",
        "`'%5d,%5d,%5d,%5d' % row` and `'%5d%5d%5d%5d' % row` take 3 s",
        "We have seen that the table of a hundred rows is by far the slowest one of all that we ever had to merge",
    ],
)
def test_a_second_look_passes_common_calls_formats_addresses_and_prose(facts: MergedPullRequest, text: str) -> None:
    assert look_again(make_statement(text), facts, WORDY) == ()


def test_a_name_that_the_base_knows_elsewhere_is_no_leak(facts: MergedPullRequest) -> None:
    text = "Something is wrong with key_index"
    assert look_again(make_statement(text, names_at_base=("key_index",)), facts, PATCH) == ()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("hash", "It is in 0ddba11 already"),
        ("prose", "Every lookup went through all of the keys before."),
        ("later_comment", "> A set of keys can be probed in constant time"),
        ("person", "Says Wilhelmina  Coyote"),
    ],
)
def test_commits_and_later_comments_are_looked_at_too(facts: MergedPullRequest, kind: str, text: str) -> None:
    message = "Probe keys\n\nEvery lookup went through all of the keys before."
    commit = BranchCommit(sha="0ddba11" + "c" * 33, message=message, people=("Wilhelmina Coyote", "w@acme.example"))
    said = ThreadComment(author="eve", body="A set of keys can be probed in constant time!", created_at=facts.merged_at)
    statement = make_statement(text, commits=(commit,), walk=LinkWalk(later=(said,)))
    assert {leak.kind for leak in look_again(statement, facts, PATCH)} == {kind}
    assert look_again(make_statement(text), facts, PATCH) == ()


def test_every_variant_is_looked_at(facts: MergedPullRequest) -> None:
    statement = make_statement("slow", statement_issue="a key_index", final_md="a key_index")
    assert [leak.where for leak in look_again(statement, facts, PATCH)] == ["statement_issue", "final_md"]


def test_a_telling_statement_shuts_the_gate_and_is_named(facts: MergedPullRequest) -> None:
    other = facts.model_copy(update={"number": 78})
    verdict = nothing_leaks(
        [(make_statement("slow"), other, PATCH), (make_statement("key_index = frozenset(keys)"), facts, PATCH)]
    )
    assert not verdict.passed
    assert verdict.offenders == ("acme/wheels#77",)


def test_clean_statements_pass(facts: MergedPullRequest) -> None:
    verdict = nothing_leaks([(make_statement("Merging is slow"), facts, PATCH)])
    assert verdict.passed
    assert verdict.figures == {"statements": 1, "leaking": 0, "leaks": 0}


def test_a_month_without_statements_passes() -> None:
    assert nothing_leaks([]).passed
