"""Issues and pull requests as the API returns them: the history's facts, completed by the side file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from formulacode_dagster.sources.git.log import login
from formulacode_dagster.sources.offline.side import TextReference, references_in
from formulacode_dagster.sources.offline.side_file import Comment, Edit, IssueFacts, TitleEdit, versions_of


class State(StrEnum):
    """`PullRequestState`; an issue is never merged."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"
    MERGED = "MERGED"


@dataclass(frozen=True, slots=True)
class Title:
    """A change of title."""

    moment: datetime
    previous: str
    current: str
    author: str | None


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request. `base_sha` is the commit it was merged onto, `fork_sha` the fork point of its branch.

    `closes` are issues of its own repository and of others, `linked` those of them without a keyword.
    """

    repository_id: int
    number: int
    title: str
    body: str
    author: str | None
    labels: tuple[str, ...]
    state: State
    created_at: datetime
    merged_at: datetime | None
    closed_at: datetime | None
    base_ref: str
    base_sha: str
    fork_sha: str
    head_sha: str
    merge_sha: str | None
    merged_by: str | None
    commit_count: int
    closes: tuple[TextReference, ...]
    linked: tuple[TextReference, ...]
    versions: tuple[Edit, ...]
    comments: tuple[Comment, ...]
    titles: tuple[Title, ...] = ()


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue. `body` is its newest version; `versions` are all of them, oldest first, if there are several."""

    repository_id: int
    number: int
    title: str
    body: str
    author: str | None
    state: State
    created_at: datetime
    closed_at: datetime | None
    closed_by: int | None
    versions: tuple[Edit, ...]
    comments: tuple[Comment, ...]
    titles: tuple[Title, ...] = ()


Thread = Issue | PullRequest


def merge_moment(pull_request: PullRequest) -> datetime:
    """Return the merge time of *pull_request*; its creation time, if it was never merged."""
    return pull_request.merged_at or pull_request.created_at


def issue_of(repository_id: int, facts: IssueFacts, closer: PullRequest | None) -> Issue:
    """Return the issue of *facts*; *closer* is the merged pull request that closes it."""
    versions = versions_of(facts.author, facts.created_at, facts.body, facts.edits)
    titles = titles_of(facts.title, facts.author, facts.titles)
    closed_at = facts.closed_at or (closer.merged_at if closer else None)
    return Issue(
        repository_id=repository_id,
        number=facts.number,
        title=titles[-1].current if titles else facts.title,
        body=versions[-1].body if versions else facts.body,
        author=login(facts.author),
        state=State.CLOSED if closed_at else State.OPEN,
        created_at=facts.created_at,
        closed_at=closed_at,
        closed_by=closer.number if closer else None,
        versions=versions,
        comments=facts.comments,
        titles=titles,
    )


def titles_of(title: str, author: str | None, edits: Sequence[TitleEdit]) -> tuple[Title, ...]:
    """The changes of a title that was first *title*, oldest first."""
    changes: list[Title] = []
    for edit in sorted(edits, key=lambda edit: edit.edited_at):
        previous = changes[-1].current if changes else title
        changes.append(Title(edit.edited_at, previous, edit.title, login(edit.author or author)))
    return tuple(changes)


def mentions_of(thread: Thread) -> dict[TextReference, datetime]:
    """Return the threads that *thread* mentions or closes in any version of its texts, each with the time of the first
    mention.
    """
    said = [(thread.created_at, thread.body)] if not thread.versions else []
    said += [(version.edited_at, version.body) for version in thread.versions]
    for comment in thread.comments:
        if not comment.edits:
            said.append((comment.created_at, comment.body))
        said += [(version.edited_at, version.body) for version in comment.versions]
    found: dict[TextReference, datetime] = {}
    if isinstance(thread, PullRequest):
        found |= dict.fromkeys((issue for issue in thread.closes if issue not in thread.linked), thread.created_at)
    for moment, text in sorted(said, key=lambda dated: dated[0]):
        for reference in references_in(text):
            found.setdefault(reference, moment)
    found.pop(TextReference("", thread.number), None)
    return found


def absent_sha(*parts: object) -> str:
    """A well-formed hash of a commit that no repository holds, as after a branch was deleted."""
    return hashlib.sha1("\0".join(("sandbox", *map(str, parts))).encode(), usedforsecurity=False).hexdigest()


def stamp(moment: datetime | None) -> str | None:
    """A moment in UTC as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None
