"""What `sandbox.json` tells of the pull requests and issues of a folder of mirrors, as it stood then."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from formulacode_dagster.models.pull_request import LinkedIssue

from .side_file import Edit, IssueFacts, PullRequestFacts, RepositoryFacts, TitleEdit

_CLOSING = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+"
    r"(?:(?:https?://github\.com/)?(?P<name>[\w.-]+/[\w.-]+?)(?:/issues/|#)|#)(?P<number>\d+)\b",
    re.IGNORECASE,
)


E = TypeVar("E", Edit, TitleEdit)


def _newest(edits: Sequence[E], before: datetime | None = None) -> E | None:
    """The last of *edits* of those made *before* a moment; None where there is none."""
    made = [edit for edit in edits if before is None or edit.edited_at < before]
    return sorted(made, key=lambda edit: edit.edited_at)[-1] if made else None


def newest_title(facts: PullRequestFacts, derived: str) -> str:
    """The title as it is now."""
    edit = _newest(facts.titles)
    return edit.title if edit is not None else facts.title or derived


def newest_body(facts: PullRequestFacts, derived: str) -> str:
    """The text as it is now."""
    edit = _newest(facts.edits)
    return edit.body if edit is not None else derived if facts.body is None else facts.body


def linked_issues(
    side: Mapping[str, RepositoryFacts], name: str, facts: PullRequestFacts, body: str, opened_at: datetime
) -> tuple[LinkedIssue, ...]:
    """The issues that *body* or *facts* say the pull request of *name* closes, as far as *side* tells of them.

    By repository and number, each as it stood before *opened_at*; those opened later are left out.
    """
    known = {repository.lower(): repository for repository in side}
    linked: dict[tuple[str, int], LinkedIssue] = {}
    for target, number in _references(facts, body):
        repository = known.get(target.lower(), "") if target else name
        issues = side[repository].issues if repository in side else ()
        issue = next((known_issue for known_issue in issues if known_issue.number == number), None)
        if issue is not None and issue.created_at < opened_at:
            linked[repository, number] = _issue(repository, issue, opened_at)
    return tuple(linked[key] for key in sorted(linked))


def _references(facts: PullRequestFacts, body: str) -> Iterator[tuple[str, int]]:
    if facts.closes:
        for closed in facts.closes:
            target, _, number = ("", "", str(closed)) if isinstance(closed, int) else closed.partition("#")
            if number.isdigit():
                yield target, int(number)
        return
    for match in _CLOSING.finditer(body):
        yield match["name"] or "", int(match["number"])


def _issue(repository: str, facts: IssueFacts, moment: datetime) -> LinkedIssue:
    title, body = _newest(facts.titles, moment), _newest(facts.edits, moment)
    return LinkedIssue(
        repository=repository,
        number=facts.number,
        title=title.title if title is not None else facts.title,
        body=body.body if body is not None else facts.body,
        author=facts.author,
        created_at=facts.created_at,
    )
