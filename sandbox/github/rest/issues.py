"""Issues (every pull request is one, too), their comments and timelines."""

from __future__ import annotations

from typing import Any

from formulacode_dagster.git.log import login
from formulacode_dagster.offline.side_file import Comment
from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import WEB, Asked
from sandbox.github.gateway import Incoming
from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, node_id, stable_id, thread_id
from sandbox.github.threads import PullRequest, State, Thread, utc
from sandbox.github.timeline import Event, Happening, events_of
from sandbox.github.tracker import newest_first

from .finding import find_shelf, find_thread
from .paging import page_of
from .shapes import label_json, repository_json, stamp, user_json

_EVENTS = {
    Happening.COMMENT: "commented",
    Happening.CLOSED: "closed",
    Happening.MERGED: "merged",
    Happening.CONNECTED: "connected",
    Happening.REFERENCED: "referenced",
    Happening.CROSS_REFERENCED: "cross-referenced",
    Happening.RENAMED: "renamed",
}


def issue(asked: Asked, incoming: Incoming) -> Answer:
    """`GET …/issues/{number}`, for a pull request too."""
    shelf, found = find_thread(asked, incoming)
    return answers.ok(issue_json(asked, shelf, found))


def issues(asked: Asked, incoming: Incoming) -> Answer:
    """`GET …/issues`: open ones, newest first, unless asked otherwise. Pull requests are among them."""
    shelf = find_shelf(asked, incoming)
    state = incoming.query.get("state", "open")
    found = [
        one
        for one in newest_first(shelf.tracker().threads())
        if state in ("all", "open" if one.state is State.OPEN else "closed")
    ]
    if incoming.query.get("direction") == "asc":
        found.reverse()
    page = page_of(asked, incoming)
    return answers.ok([issue_json(asked, shelf, one) for one in page.of(found)], page.links(incoming, len(found)))


def comments(asked: Asked, incoming: Incoming) -> Answer:
    """`GET …/issues/{number}/comments`, oldest first."""
    shelf, found = find_thread(asked, incoming)
    numbered = list(enumerate(found.comments))
    page = page_of(asked, incoming)
    shown = [_comment_json(asked, shelf, found, *one) for one in page.of(numbered)]
    return answers.ok(shown, page.links(incoming, len(numbered)))


def timeline(asked: Asked, incoming: Incoming) -> Answer:
    """`GET …/issues/{number}/timeline`: comments, references, links, merge, closing."""
    shelf, found = find_thread(asked, incoming)
    events = events_of(asked, shelf, found)
    page = page_of(asked, incoming)
    shown = [_event_json(asked, shelf, found, event) for event in page.of(events)]
    return answers.ok(shown, page.links(incoming, len(events)))


def issue_json(asked: Asked, shelf: Shelf, one: Thread) -> dict[str, Any]:
    """`issue`."""
    url = f"{asked.url}/repos/{shelf.name}"
    number = thread_id(shelf.id, one.number)
    is_pull = isinstance(one, PullRequest)
    kind = Kind.PULL_REQUEST if is_pull else Kind.ISSUE
    page = f"{WEB}/{shelf.name}/{'pull' if is_pull else 'issues'}/{one.number}"
    shown: dict[str, Any] = {
        "url": f"{url}/issues/{one.number}",
        "repository_url": url,
        "comments_url": f"{url}/issues/{one.number}/comments",
        "timeline_url": f"{url}/issues/{one.number}/timeline",
        "html_url": page,
        "id": number,
        "node_id": node_id(kind, shelf.id, number),
        "number": one.number,
        "title": one.title,
        "user": user_json(asked, one.author),
        "labels": [label_json(shelf, name) for name in one.labels],
        "state": "open" if one.state is State.OPEN else "closed",
        "state_reason": "completed" if one.state is State.CLOSED and not is_pull else None,
        "locked": False,
        "comments": len(one.comments),
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.updated_at),
        "closed_at": stamp(one.closed_at),
        "body": one.body or None,
    }
    if isinstance(one, PullRequest):
        shown["pull_request"] = {
            "url": f"{url}/pulls/{one.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": stamp(one.merged_at),
        }
    return shown


def _comment_json(asked: Asked, shelf: Shelf, owner: Thread, position: int, comment: Comment) -> dict[str, Any]:
    number = stable_id("comment", shelf.id, owner.number, position)
    created_at = utc(comment.created_at)
    url = f"{asked.url}/repos/{shelf.name}/issues"
    return {
        "id": number,
        "node_id": node_id(Kind.COMMENT, shelf.id, thread_id(shelf.id, owner.number), position),
        "url": f"{url}/comments/{number}",
        "issue_url": f"{url}/{owner.number}",
        "html_url": f"{WEB}/{shelf.name}/issues/{owner.number}#issuecomment-{number}",
        "body": comment.text,
        "user": user_json(asked, login(comment.author)),
        "created_at": stamp(created_at),
        "updated_at": stamp(utc(comment.edited_at) if comment.edited_at else created_at),
    }


def _event_json(asked: Asked, shelf: Shelf, owner: Thread, event: Event) -> dict[str, Any]:
    if event.comment is not None:
        comment = _comment_json(asked, shelf, owner, event.position, event.comment)
        return comment | {"event": _EVENTS[event.kind], "actor": user_json(asked, event.actor)}
    number = stable_id("event", shelf.id, owner.number, event.kind, event.position)
    shown: dict[str, Any] = {
        "event": _EVENTS[event.kind],
        "actor": user_json(asked, event.actor) if event.actor else None,
        "created_at": stamp(event.created_at),
    }
    if event.kind is Happening.CROSS_REFERENCED and event.other is not None:
        source = issue_json(asked, event.shelf, event.other) | {"repository": repository_json(asked, event.shelf)}
        return shown | {"updated_at": stamp(event.created_at), "source": {"type": "issue", "issue": source}}
    if event.title is not None:
        return shown | {"id": number, "rename": {"from": event.title.previous, "to": event.title.current}}
    # What was linked is not told by REST, only that something was.
    merged = owner if event.kind is Happening.MERGED else event.other if event.kind is Happening.CLOSED else None
    sha = merged.merge_sha if isinstance(merged, PullRequest) else event.commit.sha if event.commit else None
    where = f"{asked.url}/repos/{event.shelf.name}/commits/{sha}" if sha else None
    return shown | {"id": number, "commit_id": sha, "commit_url": where}
