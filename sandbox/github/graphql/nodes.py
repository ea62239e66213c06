"""Repositories, issues, pull requests and their parts, as GraphQL's objects: dictionaries by field name.

A field with arguments, or with an expensive value, is a function of the execution's info and these arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formulacode_dagster.sources.git.log import login
from formulacode_dagster.sources.offline.side_file import Edit
from sandbox.github.context import Failure, Rate, RequestContext
from sandbox.github.node_ids import Kind, node_id, thread_id
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import Issue, PullRequest, Thread, stamp
from sandbox.github.timeline import Event, EventKind, closed_issues, events_of

from .connections import connect
from .errors import not_found

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo

Node = dict[str, Any]


@dataclass(frozen=True)
class Scope:
    """The context of one execution: the call, the state of the budget, the cost of the query."""

    asked: RequestContext
    rate: Rate
    cost: int
    failure: Failure | None = None


def actor_node(login: str | None) -> Node | None:
    """The user or bot *login*; null for a deleted account."""
    return {"__typename": "Bot" if login.endswith("[bot]") else "User", "login": login} if login else None


def repository_node(served: ServedRepository) -> Node:
    """A repository as it is called today."""
    facts = served.facts

    def archived_at(_info: GraphQLResolveInfo) -> str | None:
        return stamp(facts.archived_at or served.tracker().last_commit) if facts.is_archived else None

    def default_branch(_info: GraphQLResolveInfo) -> Node | None:
        tracker = served.tracker()
        return {"name": tracker.default_branch} if tracker.tip else None

    return {
        "__typename": "Repository",
        "id": served.node_id,
        "databaseId": served.id,
        "nameWithOwner": served.name,
        "description": facts.description or None,
        "stargazerCount": facts.stars,
        "isFork": facts.is_fork,
        "isArchived": facts.is_archived,
        "archivedAt": archived_at,
        "isPrivate": facts.is_private,
        "diskUsage": lambda _info: served.size_kb(),
        "isEmpty": lambda _info: not served.tracker().tip,
        "primaryLanguage": {"name": facts.language} if facts.language else None,
        "defaultBranchRef": default_branch,
        "pullRequests": lambda _info, **page: _pull_requests(served, **page),
        "pullRequest": lambda _info, number: _pull_request(served, number),
        "issueOrPullRequest": lambda info, number: _issue_or_pull_request(info.context.asked, served, number),
    }


def _pull_requests(
    served: ServedRepository,
    states: Sequence[str] = (),
    orderBy: dict[str, str] | None = None,
    **page: Any,
) -> Node:
    """The pull requests of *served*; updated last when they were merged, as far as anybody knows here."""
    if orderBy != {"field": "UPDATED_AT", "direction": "DESC"} or list(states) != ["MERGED"]:
        raise NotImplementedError("the sandbox lists merged pull requests only, those updated last first")
    newest = served.tracker().by_merge[::-1]
    return connect(newest, lambda found: thread_node(served, found), **page)


def _pull_request(served: ServedRepository, number: int) -> Node:
    found = served.tracker().pull_requests.get(number)
    if found is None:
        raise not_found(f"a PullRequest with the number of {number}.")
    return thread_node(served, found)


def _issue_or_pull_request(asked: RequestContext, served: ServedRepository, number: int) -> Node:
    """Return the one with the *number*; a transferred one responds from its current repository."""
    found = served.tracker().thread(number)
    if found:
        return thread_node(served, found)
    name, _, there = served.facts.transferred.get(number, "").partition("#")
    elsewhere = asked.visible(asked.folder.current(name)) if name else None
    issue = elsewhere.tracker().issues.get(int(there)) if elsewhere else None
    if elsewhere is None or issue is None:
        raise not_found(f"an issue or pull request with the number of {number}.")
    return thread_node(elsewhere, issue)


def thread_node(served: ServedRepository, thread: Thread, peers: Sequence[PullRequest] = ()) -> Node:
    """An issue or pull request; *peers* are pull requests of the same page, measured together."""
    if isinstance(thread, Issue):
        return _thread_node(served, thread, Kind.ISSUE, "Issue")
    return _thread_node(served, thread, Kind.PULL_REQUEST, "PullRequest") | {
        "mergedAt": stamp(thread.merged_at),
        "updatedAt": stamp(thread.merged_at or thread.created_at),
        "mergeCommit": {"oid": thread.merge_sha} if thread.merge_sha else None,
        "baseRefName": thread.base_ref,
        "headRefOid": thread.head_sha,
        "changedFiles": lambda _info: served.size(thread, peers).files,
        "labels": lambda _info, **page: connect(thread.labels, lambda name: {"name": name}, **page),
        "commits": lambda _info: connect(range(thread.commit_count)),
        "closingIssuesReferences": lambda info, **page: connect(
            closed_issues(info.context.asked, served, thread), lambda closed: thread_node(*closed), **page
        ),
    }


def _thread_node(served: ServedRepository, thread: Thread, kind: Kind, typename: str) -> Node:
    node: Node = {
        "__typename": typename,
        "id": node_id(kind, served.id, thread_id(served.id, thread.number)),
        "number": thread.number,
        "title": thread.title,
        "body": thread.body,
        "createdAt": stamp(thread.created_at),
        "lastEditedAt": stamp(thread.versions[-1].edited_at) if thread.versions else None,
        "author": actor_node(thread.author),
        "repository": lambda _info: repository_node(served),
        "comments": lambda _info, **page: connect(
            range(len(thread.comments)), lambda position: comment_node(served, thread, position), **page
        ),
        "userContentEdits": lambda _info, **page: _edits_page(thread.versions, page),
    }

    def timeline_items(info: GraphQLResolveInfo, itemTypes: Sequence[str] | None = None, **page: Any) -> Node:
        """Return its events, as far as the schema has a type for them."""
        events = [
            event
            for event in events_of(info.context.asked, served, thread)
            if event.kind in _EVENT_TYPES and (not itemTypes or event.kind in itemTypes)
        ]
        return connect(events, lambda event: _event_node(event, node), **page)

    return node | {"timelineItems": timeline_items}


def comment_node(served: ServedRepository, thread: Thread, position: int) -> Node:
    """A comment in its newest version, the one at *position* of *thread*."""
    comment = thread.comments[position]
    return {
        "__typename": "IssueComment",
        "id": node_id(Kind.COMMENT, served.id, thread_id(served.id, thread.number), position),
        "author": actor_node(login(comment.author)),
        "body": comment.text,
        "createdAt": stamp(comment.created_at),
        "lastEditedAt": stamp(comment.edited_at),
        "userContentEdits": lambda _info, **page: _edits_page(comment.versions, page),
    }


def _edits_page(versions: Sequence[Edit], page: dict[str, Any]) -> Node:
    """Whole texts, newest first, null for one that was deleted; none when the text was never edited."""
    return connect(
        versions[::-1],
        lambda edit: {"editedAt": stamp(edit.edited_at), "diff": None if edit.deleted_at else edit.body},
        **page,
    )


_EVENT_TYPES = {
    EventKind.CROSS_REFERENCED: "CrossReferencedEvent",
    EventKind.CONNECTED: "ConnectedEvent",
    EventKind.RENAMED: "RenamedTitleEvent",
}


def _event_node(event: Event, owner: Node) -> Node:
    """An entry of *owner*'s timeline; of a link, *owner* is the source and the other side the subject."""
    other = thread_node(event.served, event.other) if event.other else None
    return {
        "__typename": _EVENT_TYPES[event.kind],
        "createdAt": stamp(event.created_at),
        "source": owner if event.kind is EventKind.CONNECTED else other,
        "subject": other,
        "previousTitle": event.title.previous if event.title else "",
    }
