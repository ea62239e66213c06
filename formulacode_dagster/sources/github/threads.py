"""Issues and pull requests read by name, a level of a walk at a time, as they stood at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.links import Link, ThreadComment, ThreadKind, UnreadableLink
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.log import GHOST
from formulacode_dagster.sources.github.transport.answers import GraphQLAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .connections import read_nodes
from .nodes import Connection, GitHubRecord, RepositoryRef, Written, read
from .queries import THREAD_COMMENTS, THREAD_EVENTS, threads_query
from .references import ThreadReference, references_in
from .versions import bodies_before

ATTEMPTS = 3


class NamedThread(GitHubRecord):
    """The other side of an event; empty if GitHub does not show it."""

    number: int | None = None
    created_at: datetime | None = None
    repository: RepositoryRef | None = None


class EventNode(GitHubRecord):
    """A cross-reference, a link set by hand, or a new title."""

    created_at: datetime
    source: NamedThread | None = None
    subject: NamedThread | None = None
    previous_title: str | None = None


_COMMENTS, _EVENTS = Connection[Written], Connection[EventNode]


class _Home(GitHubRecord):
    name_with_owner: str
    is_private: bool


class ThreadNode(Written):
    """An issue or pull request in its current state."""

    kind: Literal["Issue", "PullRequest"] = Field(alias="__typename")
    number: int
    title: str
    merged_at: datetime | None = None
    repository: _Home
    comments: Connection[Written]
    timeline_items: Connection[EventNode]
    closing_issues_references: Connection[NamedThread] | None = None

    @property
    def name(self) -> ThreadReference:
        """Its current name, which may differ from the requested one."""
        return ThreadReference(self.repository.name_with_owner, self.number)


@dataclass(frozen=True)
class Thread:
    """An issue or pull request as it stood, and the references of its texts and timeline, in order."""

    link: Link
    references: tuple[ThreadReference, ...]
    partly_read: bool
    later: tuple[ThreadComment, ...] = ()
    """Comments from the moment on, as far as they were read, for the detection of quotations."""

    @property
    def name(self) -> ThreadReference:
        """Its name when it was read."""
        return ThreadReference(self.link.repository, self.link.number)


async def read_threads(
    client: GitHubTransport, names: Sequence[ThreadReference]
) -> Mapping[ThreadReference, ThreadNode | UnreadableLink]:
    """Read each of *names* (at most 50) in one request, or in smaller ones if GitHub finds that too heavy.

    Threads that GitHub does not show become UnreadableLink; a GitHub that is dead, or refuses every request, raises as
    the client does.
    """
    try:
        return await _read_together(client, names)
    except ItemFailure as failure:
        if failure.kind != FailureKind.OVERLOADED:
            raise
    if len(names) == 1:
        return {names[0]: UnreadableLink(name=str(names[0]), reason="overloaded")}
    half = len(names) // 2
    return {**await read_threads(client, names[:half]), **await read_threads(client, names[half:])}


async def _read_together(
    client: GitHubTransport, names: Sequence[ThreadReference]
) -> dict[ThreadReference, ThreadNode | UnreadableLink]:
    threads: dict[ThreadReference, ThreadNode | UnreadableLink] = {}
    for _ in range(ATTEMPTS):
        waiting = [name for name in names if name not in threads]
        if not waiting:
            break
        variables: dict[str, str | int] = {}
        for place, name in enumerate(waiting):
            owner, _, short = name.repository.partition("/")
            variables |= {f"owner{place}": owner, f"name{place}": short, f"number{place}": name.number}
        answer = await client.graphql(threads_query(len(waiting)), variables)
        for place, name in enumerate(waiting):
            raw = (answer.data.get(f"t{place}") or {}).get("thread")
            if raw is not None:
                threads[name] = read(ThreadNode, raw, str(name))
            elif reason := _refusal(answer, f"t{place}"):
                threads[name] = UnreadableLink(name=str(name), reason=reason)
    missing = [name for name in names if name not in threads]
    return threads | {name: UnreadableLink(name=str(name), reason="unanswered") for name in missing}


def _refusal(answer: GraphQLAnswer, alias: str) -> str:
    """Return GitHub's reason for the missing *alias*, empty if it gives none: then a retry may help."""
    kinds = [error.type for error in answer.errors if error.path[:1] == (alias,) and len(error.path) <= 2]
    return kinds[0].lower() if kinds else ""


async def as_it_stood(
    client: GitHubTransport, nodes: Sequence[ThreadNode], moment: datetime | None
) -> tuple[Thread, ...]:
    """*nodes* with nothing that was written, edited, linked or renamed at *moment* or later."""
    whole = [await _completed(client, node, moment) for node in nodes]
    texts: list[Written] = [thread.node for thread in whole]
    texts += [comment for thread in whole for comment in thread.comments]
    bodies = await bodies_before(client, texts, moment)
    return tuple(_thread(thread, bodies, moment) for thread in whole)


@dataclass(frozen=True)
class _Whole:
    """A thread with all pages of its connections, as far as they are before the moment."""

    node: ThreadNode
    comments: Sequence[Written]
    later_comments: Sequence[Written]
    events: Sequence[EventNode]
    later: Sequence[EventNode]
    partly_read: bool
    host: str


async def _completed(client: GitHubTransport, node: ThreadNode, moment: datetime | None) -> _Whole:
    comments, missing_comments = await read_nodes(
        client,
        node.id,
        node.comments,
        _COMMENTS,
        THREAD_COMMENTS,
        "comments",
        ended=lambda comment: not _is_before(comment.created_at, moment),
    )
    # titles and links of later on must be known, to be undone: events are read to the end
    events, missing_events = await read_nodes(
        client, node.id, node.timeline_items, _EVENTS, THREAD_EVENTS, "timelineItems"
    )
    return _Whole(
        node,
        [comment for comment in comments if _is_before(comment.created_at, moment)],
        # of one that was edited since, the newest version is a later text as well
        [comment for comment in comments if not _is_before(comment.last_edited_at or comment.created_at, moment)],
        [event for event in events if _is_before(event.created_at, moment)],
        [event for event in events if not _is_before(event.created_at, moment)],
        partly_read=bool(missing_comments or missing_events),
        host=client.addresses.host,
    )


def _thread(whole: _Whole, bodies: Mapping[str, str], moment: datetime | None) -> Thread:
    node = whole.node
    comments = tuple(_comment(comment, bodies[comment.id]) for comment in whole.comments)
    renamed = [event.previous_title for event in whole.later if event.previous_title is not None]
    link = Link(
        repository=node.name.repository,
        number=node.number,
        title=renamed[0] if renamed else node.title,
        body=bodies[node.id],
        author=node.author.login if node.author else GHOST,
        created_at=node.created_at,
        kind=ThreadKind.ISSUE if node.kind == "Issue" else ThreadKind.PULL_REQUEST,
        distance=0,
        comments=comments,
    )
    references = _references(whole, (link.body, *(comment.body for comment in comments)), moment)
    later = tuple(_comment(comment, comment.body) for comment in whole.later_comments)
    return Thread(link, references, whole.partly_read, later)


def _comment(comment: Written, body: str) -> ThreadComment:
    author = comment.author.login if comment.author else GHOST
    return ThreadComment(author=author, body=body, created_at=comment.created_at)


def _references(whole: _Whole, texts: Sequence[str], moment: datetime | None) -> tuple[ThreadReference, ...]:
    """Return closing issues first, then references of body, comments and timeline, without the thread itself."""
    name = whole.node.name
    written = [
        reference
        for text in texts
        for reference in references_in(text, name.repository, reached=name.number, host=whole.host)
    ]
    linked = [reference for event in whole.events for reference in _others(event, name, moment)]
    by_hand = [event for event in whole.later if event.subject is not None]
    unlinked = {reference.key for event in by_hand for reference in _others(event, name, moment)}
    early = {reference.key for reference in (*written, *linked)}
    closing = whole.node.closing_issues_references
    closed = sorted(
        reference
        for node in (closing.nodes if closing else ())
        if (reference := _named(node, moment)) and (reference.key in early or reference.key not in unlinked)
    )
    references_by_key: dict[tuple[str, int], ThreadReference] = {}
    for reference in (*closed, *written, *linked):
        references_by_key.setdefault(reference.key, reference)
    references_by_key.pop(name.key, None)
    return tuple(references_by_key.values())


def _others(event: EventNode, name: ThreadReference, moment: datetime | None) -> list[ThreadReference]:
    sides = (_named(event.source, moment), _named(event.subject, moment))
    return [side for side in sides if side is not None and side.key != name.key]


def _named(node: NamedThread | None, moment: datetime | None) -> ThreadReference | None:
    """The name of a thread that was opened before *moment*."""
    if node is None or node.number is None or node.repository is None or node.created_at is None:
        return None
    return (
        ThreadReference(node.repository.name_with_owner, node.number) if _is_before(node.created_at, moment) else None
    )


def _is_before(instant: datetime, moment: datetime | None) -> bool:
    return moment is None or instant < moment
