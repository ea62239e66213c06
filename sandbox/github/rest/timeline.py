"""Events of an issue or pull request, in REST's form."""

from __future__ import annotations

from typing import Any

from formulacode_dagster.sources.git.log import login
from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import RequestContext
from sandbox.github.gateway import Incoming
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import PullRequest, State, Thread, stamp
from sandbox.github.timeline import Event, EventKind, events_of

from .finding import find_thread
from .paging import page_of
from .shapes import repository_json, user_json

_EVENTS = {
    EventKind.COMMENT: "commented",
    EventKind.CLOSED: "closed",
    EventKind.MERGED: "merged",
    EventKind.CONNECTED: "connected",
    EventKind.REFERENCED: "referenced",
    EventKind.CROSS_REFERENCED: "cross-referenced",
    EventKind.RENAMED: "renamed",
}


def timeline(asked: RequestContext, incoming: Incoming) -> Answer:
    """`GET …/issues/{number}/timeline`: comments, references, links, merge, closing."""
    served, found = find_thread(asked, incoming)
    events = events_of(asked, served, found)
    page = page_of(asked, incoming)
    shown = [_event_json(asked, found, event) for event in page.of(events)]
    return answers.ok(shown, page.links(incoming, len(events)))


def _event_json(asked: RequestContext, owner: Thread, event: Event) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "event": _EVENTS[event.kind],
        "actor": user_json(event.actor) if event.actor or event.comment else None,
        "created_at": stamp(event.created_at),
    }
    if event.comment is not None:
        return shown | {"body": event.comment.text, "user": user_json(login(event.comment.author))}
    if event.kind is EventKind.CROSS_REFERENCED and event.other is not None:
        return shown | {"source": {"issue": _issue_json(event.served, event.other)}}
    if event.title is not None:
        return shown | {"rename": {"from": event.title.previous, "to": event.title.current}}
    # REST reports only that something was linked, not its target.
    merged = owner if event.kind is EventKind.MERGED else event.other if event.kind is EventKind.CLOSED else None
    sha = merged.merge_sha if isinstance(merged, PullRequest) else event.commit.sha if event.commit else None
    where = f"{asked.url}/repos/{event.served.name}/commits/{sha}" if sha else None
    return shown | {"commit_id": sha, "commit_url": where}


def _issue_json(served: ServedRepository, thread: Thread) -> dict[str, Any]:
    """`issue`, which a pull request is too, with its repository."""
    shown: dict[str, Any] = {
        "number": thread.number,
        "state": "open" if thread.state is State.OPEN else "closed",
        "repository": repository_json(served),
    }
    return shown | ({"pull_request": {"merged_at": stamp(thread.merged_at)}} if isinstance(thread, PullRequest) else {})
