"""What happened to an issue or pull request, as REST tells it."""

from __future__ import annotations

from typing import Any

from formulacode_dagster.git.log import login
from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import WEB, RequestContext
from sandbox.github.gateway import Incoming
from sandbox.github.node_ids import Kind, node_id, stable_id, thread_id
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
    shown = [_event_json(asked, served, found, event) for event in page.of(events)]
    return answers.ok(shown, page.links(incoming, len(events)))


def _event_json(asked: RequestContext, served: ServedRepository, owner: Thread, event: Event) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "event": _EVENTS[event.kind],
        "actor": user_json(asked, event.actor) if event.actor or event.comment else None,
        "created_at": stamp(event.created_at),
    }
    if event.comment is not None:
        return shown | {
            "id": stable_id("comment", served.id, owner.number, event.position),
            "node_id": node_id(Kind.COMMENT, served.id, thread_id(served.id, owner.number), event.position),
            "body": event.comment.text,
            "user": user_json(asked, login(event.comment.author)),
            "updated_at": stamp(event.comment.edited_at or event.created_at),
        }
    if event.kind is EventKind.CROSS_REFERENCED and event.other is not None:
        source = _issue_json(asked, event.served, event.other)
        return shown | {"updated_at": stamp(event.created_at), "source": {"type": "issue", "issue": source}}
    shown["id"] = stable_id("event", served.id, owner.number, event.kind, event.position)
    if event.title is not None:
        return shown | {"rename": {"from": event.title.previous, "to": event.title.current}}
    # What was linked is not told by REST, only that something was.
    merged = owner if event.kind is EventKind.MERGED else event.other if event.kind is EventKind.CLOSED else None
    sha = merged.merge_sha if isinstance(merged, PullRequest) else event.commit.sha if event.commit else None
    where = f"{asked.url}/repos/{event.served.name}/commits/{sha}" if sha else None
    return shown | {"commit_id": sha, "commit_url": where}


def _issue_json(asked: RequestContext, served: ServedRepository, thread: Thread) -> dict[str, Any]:
    """`issue`, which a pull request is too, with its repository."""
    url = f"{asked.url}/repos/{served.name}"
    number = thread_id(served.id, thread.number)
    is_pull = isinstance(thread, PullRequest)
    page = f"{WEB}/{served.name}/{'pull' if is_pull else 'issues'}/{thread.number}"
    shown: dict[str, Any] = {
        "url": f"{url}/issues/{thread.number}",
        "html_url": page,
        "id": number,
        "node_id": node_id(Kind.PULL_REQUEST if is_pull else Kind.ISSUE, served.id, number),
        "number": thread.number,
        "title": thread.title,
        "user": user_json(asked, thread.author),
        "state": "open" if thread.state is State.OPEN else "closed",
        "created_at": stamp(thread.created_at),
        "closed_at": stamp(thread.closed_at),
        "body": thread.body or None,
        "repository": repository_json(asked, served),
    }
    if isinstance(thread, PullRequest):
        shown["pull_request"] = {"url": f"{url}/pulls/{thread.number}", "merged_at": stamp(thread.merged_at)}
    return shown
