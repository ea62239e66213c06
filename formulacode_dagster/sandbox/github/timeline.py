"""What happened to an issue or pull request: comments, closings, merges, cross-references. Oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from formulacode_dagster.sandbox.side_file import Comment

from .library import Shelf
from .threads import Issue, PullRequest, State, Thread, login, utc


class Happening(StrEnum):
    """Kinds of entries, as `timelineItems(itemTypes:)` names them."""

    COMMENT = "ISSUE_COMMENT"
    CLOSED = "CLOSED_EVENT"
    MERGED = "MERGED_EVENT"
    CROSS_REFERENCED = "CROSS_REFERENCED_EVENT"


@dataclass(frozen=True, slots=True)
class Event:
    """One entry. `source` is the thread that mentions this one, `comment` has its position with it."""

    kind: Happening
    created_at: datetime
    actor: str | None
    position: int = 0
    comment: Comment | None = None
    source: Thread | None = None
    closer: PullRequest | None = None


def events_of(shelf: Shelf, thread: Thread) -> list[Event]:
    """Everything that happened to *thread*."""
    found = [*_comments(thread), *_references(shelf, thread), *_ending(shelf, thread)]
    return sorted(found, key=lambda event: event.created_at)


def _comments(thread: Thread) -> Iterator[Event]:
    for position, comment in enumerate(thread.comments):
        yield Event(Happening.COMMENT, utc(comment.created_at), login(comment.author), position, comment)


def _references(shelf: Shelf, thread: Thread) -> Iterator[Event]:
    for mention in shelf.tracker().mentions.get(thread.number, ()):
        source = mention.source
        yield Event(Happening.CROSS_REFERENCED, mention.moment, source.author, source.number, source=source)


def _ending(shelf: Shelf, thread: Thread) -> Iterator[Event]:
    if isinstance(thread, PullRequest):
        if thread.merged_at is not None:
            yield Event(Happening.MERGED, thread.merged_at, thread.merged_by)
        if thread.closed_at is not None:
            yield Event(Happening.CLOSED, thread.closed_at, thread.merged_by or thread.author)
    elif thread.state is State.CLOSED and thread.closed_at is not None:
        closer = shelf.tracker().pull_requests.get(thread.closed_by) if thread.closed_by else None
        actor = closer.merged_by if closer else thread.author
        yield Event(Happening.CLOSED, thread.closed_at, actor, closer=closer)


def closers_of(shelf: Shelf, issue: Issue) -> list[PullRequest]:
    """Pull requests that close *issue*, or would."""
    return [one for one in shelf.tracker().pull_requests.values() if issue.number in one.closes]
