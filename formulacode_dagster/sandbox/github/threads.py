"""Issues and pull requests as the API tells them: the history's facts, completed by the side file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from formulacode_dagster.models.pull_request import MergeKind
from formulacode_dagster.sandbox.side_file import Comment, Edit, IssueFacts

GHOST = "ghost"
_NOREPLY = re.compile(r"(?:\d+\+)?([A-Za-z0-9\[\]-]+)@users\.noreply\.github\.com", re.IGNORECASE)
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)\b", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w/&])#(\d+)\b")


class State(StrEnum):
    """`PullRequestState`; an issue is never merged."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"
    MERGED = "MERGED"


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request. `base_sha` is what it was put on, `fork_sha` where its branch forks."""

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
    head_ref: str
    head_sha: str
    head_known: bool
    merge_sha: str | None
    merge_kind: MergeKind | None
    merged_by: str | None
    commit_count: int
    closes: tuple[int, ...]
    comments: tuple[Comment, ...]

    @property
    def updated_at(self) -> datetime:
        """The last thing that happened to it."""
        return max([self.closed_at or self.created_at, *(comment.created_at for comment in self.comments)])

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The sandbox knows of no edited pull request."""
        return ()


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue. `body` is its newest version; `versions` are all of them, oldest first, when there are several."""

    repository_id: int
    number: int
    title: str
    body: str
    author: str | None
    labels: tuple[str, ...]
    state: State
    created_at: datetime
    closed_at: datetime | None
    closed_by: int | None
    versions: tuple[Edit, ...]
    comments: tuple[Comment, ...]

    @property
    def updated_at(self) -> datetime:
        """The last thing that happened to it."""
        moments = [self.closed_at or self.created_at, *(comment.created_at for comment in self.comments)]
        return max([*moments, *(version.edited_at for version in self.versions)])


Thread = Issue | PullRequest


def issue_of(repository_id: int, facts: IssueFacts, closer: PullRequest | None) -> Issue:
    """The issue that *facts* tell of; *closer* is the merged pull request that closes it."""
    first = Edit(edited_at=facts.created_at, body=facts.body, author=facts.author)
    versions = tuple(sorted((first, *facts.edits), key=lambda edit: edit.edited_at))
    closed_at = facts.closed_at or (closer.merged_at if closer else None)
    return Issue(
        repository_id=repository_id,
        number=facts.number,
        title=facts.title,
        body=versions[-1].body,
        author=login(facts.author),
        labels=facts.labels,
        state=State.CLOSED if closed_at else State.OPEN,
        created_at=utc(facts.created_at),
        closed_at=utc(closed_at) if closed_at else None,
        closed_by=closer.number if closer else None,
        versions=versions if len(versions) > 1 else (),
        comments=facts.comments,
    )


def closing_numbers(text: str) -> tuple[int, ...]:
    """Issues of the same repository that *text* closes with a keyword."""
    return tuple(dict.fromkeys(int(number) for number in _CLOSING.findall(text)))


def mentioned_numbers(text: str) -> tuple[int, ...]:
    """Issues and pull requests of the same repository that *text* mentions as `#N`."""
    return tuple(dict.fromkeys(int(number) for number in _MENTION.findall(text)))


def mentions_of(thread: Thread) -> dict[int, datetime]:
    """The numbers that *thread* mentions or closes, each with the time of the first mention."""
    closes = thread.closes if isinstance(thread, PullRequest) else ()
    found = {
        number: utc(comment.created_at)
        for comment in sorted(thread.comments, key=lambda comment: comment.created_at, reverse=True)
        for number in mentioned_numbers(comment.body)
    }
    found |= dict.fromkeys((*mentioned_numbers(thread.body), *closes), thread.created_at)
    found.pop(thread.number, None)
    return found


def login(name: str | None) -> str | None:
    """A deleted account, `ghost`, is nobody."""
    return None if name in (None, "", GHOST) else name


def login_of(name: str, email: str) -> str | None:
    """A login for the author of a commit: from GitHub's no-reply address, else from the name."""
    match = _NOREPLY.fullmatch(email.strip())
    if match:
        return match[1]
    return login(re.sub(r"[^A-Za-z0-9\[\]]+", "-", name).strip("-")[:39])


def absent_sha(*parts: object) -> str:
    """A well-formed hash of a commit that no repository holds, as after a branch was deleted."""
    return hashlib.sha1("\0".join(("sandbox", *map(str, parts))).encode(), usedforsecurity=False).hexdigest()


def utc(moment: datetime) -> datetime:
    """In UTC and whole seconds, as the API tells times; a naive moment is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(microsecond=0)


def from_epoch(seconds: int) -> datetime:
    """A moment from git's seconds since 1970."""
    return datetime.fromtimestamp(max(0, seconds), UTC)
