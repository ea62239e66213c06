"""The writer's view: proved by the types of its source, and by markers planted in all forbidden sources."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

from pydantic import BaseModel

from formulacode_dagster.models.links import Link, LinkWalk, ThreadComment, UnreadableLink
from formulacode_dagster.models.problem import BranchCommit
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest
from formulacode_dagster.selection.statements import writing
from formulacode_dagster.selection.statements.statements import state_problem, task_view
from formulacode_dagster.selection.statements.view import WriterView, view_of

OPENED = datetime(2026, 2, 5, tzinfo=UTC)
SHOWN = ("DESCRIPTION", "EARLY-TITLE", "EARLY-BODY")


def marker(name: str) -> str:
    return f"MARKER-{name}"


def issue(name: str, created_at: datetime, **more: Any) -> Link:
    return Link(
        repository="acme/wheels",
        number=len(name),
        title=marker(f"{name}-TITLE"),
        body=marker(f"{name}-BODY"),
        author=marker(f"{name}-AUTHOR"),
        created_at=created_at,
        comments=(ThreadComment(author=marker(f"{name}-BY"), body=marker(f"{name}-COMMENT"), created_at=created_at),),
        **more,
    )


def planted() -> tuple[MergedPullRequest, LinkWalk]:
    early, late = issue("EARLY", OPENED - timedelta(days=1)), issue("LATE", OPENED)
    facts = MergedPullRequest(
        month="2026-02",
        repository_id=1,
        repository="acme/wheels",
        number=77,
        title=marker("TITLE"),
        body=f"{marker('BODY')}\n\nFixes #1",
        author=marker("AUTHOR"),
        labels=(marker("LABEL"),),
        created_at=OPENED,
        merged_at=OPENED + timedelta(days=2),
        base_ref=marker("BASE"),
        head_sha=marker("HEAD"),
        merge_commit_sha=marker("MERGE"),
        linked_issues=(LinkedIssue(**early.model_dump(include=set(LinkedIssue.model_fields))),),
    )
    walk = LinkWalk(
        title=marker("WALKED-TITLE"),
        body=marker("WALKED-BODY"),
        links=(early, late),
        unreadable=(UnreadableLink(name=marker("UNREADABLE"), reason=marker("REASON")),),
        later=(ThreadComment(author=marker("SAID-BY"), body=marker("SAID"), created_at=OPENED),),
        partly_read=(marker("PARTLY"),),
    )
    return facts, walk


COMMITS = (BranchCommit(sha=marker("SHA"), message=marker("MESSAGE"), people=(marker("COMMITTER"),)),)
PATCH = f"diff --git a/w.py b/w.py\n--- a/w.py\n+++ b/w.py\n@@ -1 +1 @@\n-old\n+{marker('PATCH')} = 1\n".encode()


def test_only_description_and_earlier_issues_enter_a_statement() -> None:
    facts, walk = planted()
    for known in (walk, None):
        statement = state_problem(
            facts, patch=PATCH, repository_description=marker("DESCRIPTION"), walk=known, commits=COMMITS
        ).statement
        issues = known.links if known else facts.linked_issues
        view = task_view(facts, repository_description=marker("DESCRIPTION"), issues=issues, commits=COMMITS)
        written = statement.statement_minimal + (statement.statement_issue or "") + statement.final_md
        for text in (view.model_dump_json(), written):
            assert set(re.findall(r"MARKER-([A-Z-]+)", text)) == set(SHOWN)
        assert set(re.findall(r"MARKER-([A-Z-]+)", statement.statement_minimal)) == {"DESCRIPTION"}


def test_a_marker_stands_in_every_text_that_a_statement_is_made_of() -> None:
    facts, walk = planted()
    unmarked = [
        name
        for record in (facts, walk, *COMMITS)
        for name, text in texts(record)
        if not text.startswith("MARKER-") and name not in ("month", "repository", "kind", "source")
    ]
    assert unmarked == []


def texts(record: BaseModel) -> Iterator[tuple[str, str]]:
    """Name and value of each text in *record*, however deep."""
    for name in type(record).model_fields:
        value = getattr(record, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, BaseModel):
                yield from texts(part)
            elif isinstance(part, str):
                yield name, part


def test_by_type_neither_writer_nor_view_gets_a_pull_request_or_patch() -> None:
    allowed = {"repository": str, "number": int, "opened_at": datetime, "description": str}
    hints = get_type_hints(view_of)
    assert {name: hints[name] for name in allowed} == allowed
    assert set(inspect.signature(view_of).parameters) == {*allowed, "issues", "people"}
    for write in (writing.write_minimal, writing.write_issue, writing.with_report):
        assert set(inspect.signature(write).parameters) <= {"view", "report"}
        assert get_type_hints(write)["view"] is WriterView
    assert set(WriterView.model_fields) == {"repository", "description", "issues"}
    assert not {"MergedPullRequest", "PullRequest", "Change", "LinkWalk"} & set(vars(writing))


def test_an_issue_without_a_title_of_its_own_is_untitled() -> None:
    facts, _ = planted()
    bare = issue("EARLY", OPENED - timedelta(days=1)).model_copy(update={"title": "#77"})
    view = task_view(facts, repository_description="", issues=[bare])
    assert [shown.title for shown in view.issues] == ["Untitled"]
