"""What `sandbox.json` tells of the pull requests and issues of a folder of mirrors, as it stood at the merge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from formulacode_dagster.models.pull_request import LinkedIssue

from .side_file import IssueFacts, PullRequestFacts, RepositoryFacts

_CLOSING = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+"
    r"(?:(?:https?://github\.com/)?(?P<name>[\w.-]+/[\w.-]+?)(?:/issues/|#)|#)(?P<number>\d+)\b",
    re.IGNORECASE,
)


def utc(moment: datetime) -> datetime:
    """In UTC and whole seconds, as GitHub tells times; a naive moment is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(microsecond=0)


def newest_title(facts: PullRequestFacts, derived: str) -> str:
    """The title as it is now."""
    later = sorted(facts.titles, key=lambda one: utc(one.edited_at))
    return later[-1].title if later else facts.title or derived


def newest_body(facts: PullRequestFacts, derived: str) -> str:
    """The text as it is now."""
    later = sorted(facts.edits, key=lambda one: utc(one.edited_at))
    return later[-1].body if later else derived if facts.body is None else facts.body


def linked_issues(
    side: Mapping[str, RepositoryFacts], name: str, facts: PullRequestFacts, body: str, merged_at: datetime
) -> tuple[LinkedIssue, ...]:
    """The issues that *body* or *facts* say the pull request of *name* closes, as far as *side* tells of them.

    By repository and number, each as it stood before *merged_at*; those opened later are left out.
    """
    known = {repository.lower(): repository for repository in side}
    found: dict[tuple[str, int], LinkedIssue] = {}
    for target, number in _references(facts, body):
        repository = known.get(target.lower(), "") if target else name
        issues = side[repository].issues if repository in side else ()
        issue = next((one for one in issues if one.number == number), None)
        if issue is not None and utc(issue.created_at) < merged_at:
            found[repository, number] = _issue(repository, issue, merged_at)
    return tuple(found[key] for key in sorted(found))


def _references(facts: PullRequestFacts, body: str) -> Iterator[tuple[str, int]]:
    if facts.closes:
        for one in facts.closes:
            target, _, number = ("", "", str(one)) if isinstance(one, int) else one.partition("#")
            if number.isdigit():
                yield target, int(number)
        return
    for match in _CLOSING.finditer(body):
        yield match["name"] or "", int(match["number"])


def _issue(repository: str, facts: IssueFacts, moment: datetime) -> LinkedIssue:
    titles = sorted((one for one in facts.titles if utc(one.edited_at) < moment), key=lambda one: utc(one.edited_at))
    bodies = sorted((one for one in facts.edits if utc(one.edited_at) < moment), key=lambda one: utc(one.edited_at))
    return LinkedIssue(
        repository=repository,
        number=facts.number,
        title=titles[-1].title if titles else facts.title,
        body=bodies[-1].body if bodies else facts.body,
        author=facts.author,
        created_at=utc(facts.created_at),
    )
