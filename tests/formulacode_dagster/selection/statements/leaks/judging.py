"""Results of the gates, and of the second check, for a case."""

from __future__ import annotations

from datetime import UTC, datetime

from formulacode_dagster.models.links import Link, LinkWalk, ThreadComment
from formulacode_dagster.models.pull_request import LinkedIssue
from formulacode_dagster.selection.statements.gates import Gates
from formulacode_dagster.selection.statements.second_look import look_again
from tests.records import make_merged, make_statement

from .cases import Case


def gates_see(case: Case) -> bool:
    """Return True if a gate without a model stops the text."""
    return bool(Gates(case.secrets, earlier=[case.earlier]).judge(case.text, "final_md"))


def second_look_sees(case: Case) -> bool:
    """Return True if `nothing_leaks` would fail on the text."""
    secrets = case.secrets
    earlier = LinkedIssue(
        repository=secrets.repository,
        number=1,
        title="Slow",
        body=case.earlier,
        created_at=datetime(2025, 11, 1, tzinfo=UTC),
    )
    merge, head = secrets.shas
    opened = datetime(2026, 1, 1, tzinfo=UTC)
    said = tuple(ThreadComment(author="eve", body=body, created_at=opened) for body in secrets.later_comments)
    walk = LinkWalk(links=(Link(**earlier.model_dump()),), later=said)
    facts = make_merged(
        repository=secrets.repository,
        number=secrets.number,
        title=secrets.title,
        body="\n".join(secrets.texts),
        author=secrets.people[0],
        merge_commit_sha=merge,
        head_sha=head,
    )
    statement = make_statement(case.text, names_at_base=tuple(secrets.names_at_base), walk=walk)
    return bool(look_again(statement, facts, secrets.patch))
