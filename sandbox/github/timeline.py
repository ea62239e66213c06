"""Events of an issue or pull request: comments, closings, merges, links, cross-references. Oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from formulacode_dagster.sources.git.log import Commit, login, login_of
from formulacode_dagster.sources.offline.side import TextReference
from formulacode_dagster.sources.offline.side_file import Comment

from .context import RequestContext
from .served_folder import ServedRepository
from .threads import Issue, PullRequest, State, Thread, Title
from .tracker import Mention


class EventKind(StrEnum):
    """Kinds of entries, as `timelineItems(itemTypes:)` names them."""

    COMMENT = "ISSUE_COMMENT"
    CLOSED = "CLOSED_EVENT"
    MERGED = "MERGED_EVENT"
    CONNECTED = "CONNECTED_EVENT"
    REFERENCED = "REFERENCED_EVENT"
    CROSS_REFERENCED = "CROSS_REFERENCED_EVENT"
    RENAMED = "RENAMED_TITLE_EVENT"


@dataclass(frozen=True, slots=True)
class Event:
    """One entry. `other` is the thread that mentions this one or is linked with it, in the repository `served`."""

    kind: EventKind
    created_at: datetime
    actor: str | None
    served: ServedRepository
    comment: Comment | None = None
    other: Thread | None = None
    commit: Commit | None = None
    title: Title | None = None


def events_of(asked: RequestContext, served: ServedRepository, thread: Thread) -> list[Event]:
    """Everything that happened to *thread*, as far as the caller may see it."""
    found = [
        *_comments(served, thread),
        *_references(asked, served, thread),
        *_links(asked, served, thread),
        *_titles(served, thread),
        *_ending(served, thread),
    ]
    return sorted(found, key=lambda event: event.created_at)


def _comments(served: ServedRepository, thread: Thread) -> Iterator[Event]:
    for comment in thread.comments:
        yield Event(EventKind.COMMENT, comment.created_at, login(comment.author), served, comment)


def _titles(served: ServedRepository, thread: Thread) -> Iterator[Event]:
    for title in thread.titles:
        yield Event(EventKind.RENAMED, title.moment, title.author, served, title=title)


def _references(asked: RequestContext, served: ServedRepository, thread: Thread) -> Iterator[Event]:
    for where, mention in mentions_of(asked, served, thread):
        source, commit = mention.source, mention.commit
        if source is not None:
            yield Event(EventKind.CROSS_REFERENCED, mention.moment, source.author, where, other=source)
        elif commit is not None:
            who = login_of(commit.author, commit.author_email)
            yield Event(EventKind.REFERENCED, mention.moment, who, where, commit=commit)


def mentions_of(
    asked: RequestContext, served: ServedRepository, thread: Thread
) -> Iterator[tuple[ServedRepository, Mention]]:
    """Return the mentions of *thread*, with their repository; under its former names, too."""
    names = ["", *(name.lower() for name in (served.name, *served.facts.former_names))]
    for where in asked.folder.repositories():
        if asked.visible(where) is None:
            continue
        for name in names if where is served else names[1:]:
            for mention in where.tracker().mentions.get(TextReference(name, thread.number), ()):
                if mention.source is not thread:
                    yield where, mention


def _links(asked: RequestContext, served: ServedRepository, thread: Thread) -> Iterator[Event]:
    """Links set by hand between an issue and the pull request that closes it: on both, when the latter was opened."""
    pairs: list[tuple[ServedRepository, Thread]]
    if isinstance(thread, PullRequest):
        pairs = [
            (where, other) for where, other in closed_issues(asked, served, thread) if _links_to(thread, where, other)
        ]
    else:
        pairs = [
            (where, other) for where, other in closed_by(asked, served, thread) if _links_to(other, served, thread)
        ]
    for where, other in pairs:
        moment = max(other.created_at, thread.created_at)
        yield Event(EventKind.CONNECTED, moment, other.author, where, other=other)


def _links_to(pull_request: PullRequest, served: ServedRepository, issue: Thread) -> bool:
    names = {"", *(name.lower() for name in (served.name, *served.facts.former_names))}
    return any(reference.number == issue.number and reference.repository in names for reference in pull_request.linked)


def _ending(served: ServedRepository, thread: Thread) -> Iterator[Event]:
    if isinstance(thread, PullRequest):
        if thread.merged_at is not None:
            yield Event(EventKind.MERGED, thread.merged_at, thread.merged_by, served)
        if thread.closed_at is not None:
            yield Event(EventKind.CLOSED, thread.closed_at, thread.merged_by or thread.author, served)
    elif thread.state is State.CLOSED and thread.closed_at is not None:
        closer = served.tracker().pull_requests.get(thread.closed_by) if thread.closed_by else None
        actor = closer.merged_by if closer else thread.author
        yield Event(EventKind.CLOSED, thread.closed_at, actor, served, other=closer)


def closed_issues(
    asked: RequestContext, served: ServedRepository, pull_request: PullRequest
) -> list[tuple[ServedRepository, Issue]]:
    """The issues that *pull_request* closes, here and elsewhere, as far as they are there to be seen."""
    found = []
    for reference in pull_request.closes:
        where = served
        if reference.repository:
            named = asked.folder.current(reference.repository) or asked.folder.former(reference.repository)
            visible = asked.visible(named)
            if visible is None:
                continue
            where = visible
        issue = where.tracker().issues.get(reference.number)
        if issue is not None:
            found.append((where, issue))
    return found


def closed_by(
    asked: RequestContext, served: ServedRepository, issue: Issue
) -> list[tuple[ServedRepository, PullRequest]]:
    """Pull requests that close *issue*, or would."""
    return [
        (where, pull_request)
        for where in asked.folder.repositories()
        if asked.visible(where) is not None
        for pull_request in where.tracker().closing
        if (served, issue) in closed_issues(asked, where, pull_request)
    ]
