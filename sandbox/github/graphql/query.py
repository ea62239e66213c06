"""The root of every query: its fields, as functions of the execution's info and their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sandbox.github.node_ids import Kind, read_node_id, thread_number
from sandbox.github.searching import BadQueryError, Hit, parse_query, search_pull_requests
from sandbox.github.threads import Issue, PullRequest, stamp

from .connections import connect
from .errors import AnswerError, forbidden, not_found
from .nodes import Node, Scope, actor_node, comment_node, repository_node, thread_node

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo


def _rate_limit(info: GraphQLResolveInfo) -> Node:
    """The budget after this query."""
    scope: Scope = info.context
    reset = stamp(datetime.fromtimestamp(scope.rate.reset, UTC))
    return {"cost": scope.cost, "remaining": scope.rate.remaining, "resetAt": reset}


def _repository(info: GraphQLResolveInfo, owner: str, name: str, followRenames: bool = True) -> Node:
    """Return the repository of that name, including former names by default."""
    scope: Scope = info.context
    full = f"{owner}/{name}"
    folder = scope.asked.folder
    served = scope.asked.visible(folder.current(full) or (folder.former(full) if followRenames else None))
    if served is None or served.facts.is_nameless:
        raise not_found(f"a Repository with the name '{full}'.")
    if scope.asked.is_forbidden(served):
        raise forbidden()
    return repository_node(served)


def _node(info: GraphQLResolveInfo, id: str) -> Node:
    found = _by_id(info.context, id)
    if isinstance(found, Exception):
        raise found
    return found


def _nodes(info: GraphQLResolveInfo, ids: Sequence[str]) -> list[Node | Exception]:
    """The nodes with those ids; an exception as a list's item becomes null with an error at its path."""
    scope: Scope = info.context
    if len(ids) > scope.asked.limits.page:
        raise AnswerError(
            "NOT_FOUND", f"You may not provide more than {scope.asked.limits.page} node ids; you provided {len(ids)}."
        )
    return [_by_id(scope, node_id) for node_id in ids]


def _search(info: GraphQLResolveInfo, query: str, type: str, **page: Any) -> Node:  # noqa: ARG001 - GitHub's
    """Pull requests; the count is the total, the nodes end at the cap."""
    asked = info.context.asked
    try:
        hits = search_pull_requests(asked.folder, parse_query(query), private=asked.sees_private)
    except BadQueryError:
        hits = []
    peers: dict[int, list[PullRequest]] = {}

    def node(hit: Hit) -> Node:
        beside = peers.setdefault(hit.served.id, [])
        beside.append(hit.pull_request)
        return thread_node(hit.served, hit.pull_request, peers=beside)

    return connect(hits[: asked.limits.search_cap], node, **page) | {"issueCount": len(hits)}


def _by_id(scope: Scope, text: str) -> Node | Exception:
    nothing = not_found(f"a node with the global id of '{text}'.")
    named = read_node_id(text)
    served = scope.asked.visible(scope.asked.folder.by_id(named.numbers[0])) if named else None
    if named is None or served is None:
        return nothing
    if scope.asked.is_forbidden(served):
        return forbidden()
    if named.kind is Kind.REPOSITORY:
        return repository_node(served)
    thread = served.tracker().thread(thread_number(served.id, named.numbers[1])) if len(named.numbers) > 1 else None
    if thread is None:
        return nothing
    if named.kind is Kind.COMMENT:
        position = named.numbers[2] if len(named.numbers) == 3 else len(thread.comments)
        return comment_node(served, thread, position) if position < len(thread.comments) else nothing
    is_of_kind = isinstance(thread, Issue if named.kind is Kind.ISSUE else PullRequest)
    return thread_node(served, thread) if is_of_kind else nothing


QUERY: Node = {
    "rateLimit": _rate_limit,
    "viewer": lambda info: actor_node(info.context.asked.account.login),
    "repository": _repository,
    "node": _node,
    "nodes": _nodes,
    "search": _search,
}
"""`type Query`."""
