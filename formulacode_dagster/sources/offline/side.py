"""Data of `sandbox.json` about the pull requests and issues of a folder of mirrors, as it stood then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from formulacode_dagster.models.pull_request import LinkedIssue

from .side_file import Edit, IssueFacts, PullRequestFacts, RepositoryFacts, TitleEdit

_NAMED = (
    r"(?:https?://github\.com/(?P<page>[\w.-]+/[\w.-]+)/(?:issues|pull)/(?P<there>\d+)"
    r"|(?<![\w.-])(?P<name>[\w.-]+/[\w.-]+)#(?P<named>\d+)|(?<![\w/&])#(?P<here>\d+))\b"
)
_CLOSING = re.compile(rf"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+{_NAMED}", re.IGNORECASE)
_MENTION = re.compile(_NAMED, re.IGNORECASE)
E = TypeVar("E", Edit, TitleEdit)


@dataclass(frozen=True, slots=True, order=True)
class TextReference:
    """A reference in a text: `repository` is `owner/name` in lower case, empty for the text's own."""

    repository: str
    number: int


def _newest(edits: Sequence[E], before: datetime | None = None) -> E | None:
    """Return the last of *edits* made *before* a moment; None if there is none."""
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
    """Return the issues that *body* or *facts* say the pull request of *name* closes, if *side* has them.

    By repository and number, each as it stood before *opened_at*; those opened later are left out.
    """
    known = {repository.lower(): repository for repository in side}
    linked: dict[tuple[str, int], LinkedIssue] = {}
    for target in told_to_close(facts) if facts.closes else closing_references(body):
        repository = known.get(target.repository, "") if target.repository else name
        issues = side[repository].issues if repository in side else ()
        issue = next((known_issue for known_issue in issues if known_issue.number == target.number), None)
        if issue is not None and issue.created_at < opened_at:
            linked[repository, target.number] = _issue(repository, issue, opened_at)
    return tuple(linked[key] for key in sorted(linked))


def told_to_close(facts: PullRequestFacts) -> tuple[TextReference, ...]:
    """Return the issues that *facts* say the pull request closes; invalid names are skipped."""
    texts = (f"#{issue}" if isinstance(issue, int) else issue for issue in facts.closes)
    return tuple(reference for text in texts for reference in references_in(text)[:1])


def closing_references(text: str) -> tuple[TextReference, ...]:
    """Issues that *text* closes with a keyword."""
    return tuple(dict.fromkeys(map(_reference, _CLOSING.finditer(text))))


def references_in(text: str) -> tuple[TextReference, ...]:
    """Issues and pull requests that *text* mentions as `#N`, `owner/repo#N`, or by their pages' addresses."""
    return tuple(dict.fromkeys(map(_reference, _MENTION.finditer(text))))


def _reference(match: re.Match[str]) -> TextReference:
    repository = (match["page"] or match["name"] or "").lower()
    return TextReference(repository, int(match["there"] or match["named"] or match["here"]))


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
