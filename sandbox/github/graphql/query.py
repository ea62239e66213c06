"""The root of every query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sandbox.github.node_ids import Kind, read_node_id, thread_number
from sandbox.github.searching import BadQueryError, Hit, parse_query, search_pull_requests
from sandbox.github.threads import PullRequest

from .connections import Connection, connect
from .errors import NotFoundError
from .leaves import CommentNode, UserNode
from .nodes import PullRequestNode, RepositoryNode, Scope, thread_node

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo


@dataclass(frozen=True)
class RateLimitNode:
    """The budget after this query, which cost *cost* points."""

    cost: int
    remaining: int
    reset_at: datetime


class Query:
    """`type Query`."""

    def rate_limit(self, info: GraphQLResolveInfo) -> RateLimitNode:
        """The budget."""
        scope: Scope = info.context
        return RateLimitNode(scope.cost, scope.rate.remaining, datetime.fromtimestamp(scope.rate.reset, UTC))

    def viewer(self, info: GraphQLResolveInfo) -> UserNode:
        """Who asks."""
        return UserNode(info.context.asked.account.login)

    def repository(self, info: GraphQLResolveInfo, owner: str, name: str, followRenames: bool = True) -> RepositoryNode:
        """The repository of that name, former names included unless told otherwise."""
        scope: Scope = info.context
        full = f"{owner}/{name}"
        folder = scope.asked.folder
        served = folder.current(full) or (folder.former(full) if followRenames else None)
        served = scope.asked.visible(served)
        if served is None:
            raise NotFoundError(f"Could not resolve to a Repository with the name '{full}'.")
        return RepositoryNode(served)

    def node(self, info: GraphQLResolveInfo, id: str) -> Any:
        """The node with that id."""
        found = _node(info.context, id)
        if found is None:
            raise NotFoundError(f"Could not resolve to a node with the global id of '{id}'.")
        return found

    def nodes(self, info: GraphQLResolveInfo, ids: Sequence[str]) -> list[Any]:
        """The nodes with those ids; null with an error for each that is not there."""
        scope: Scope = info.context
        if len(ids) > scope.asked.limits.page:
            raise NotFoundError(
                f"You may not provide more than {scope.asked.limits.page} node ids; you provided {len(ids)}."
            )
        # An exception as a list's item becomes null with an error at its path.
        return [
            _node(scope, one) or NotFoundError(f"Could not resolve to a node with the global id of '{one}'.")
            for one in ids
        ]

    def search(self, info: GraphQLResolveInfo, query: str, type: str, **page: Any) -> Connection:  # noqa: ARG002 - GitHub's
        """Pull requests; the count tells the whole, the nodes end at the cap."""
        asked = info.context.asked
        try:
            hits = search_pull_requests(asked.folder, parse_query(query), private=asked.sees_private)
        except BadQueryError:
            return connect((), **page)
        peers: dict[int, list[PullRequest]] = {}
        shown = connect(hits[: asked.limits.search_cap], lambda hit: _found(hit, peers), **page)
        return replace(shown, total_count=len(hits))


def _found(hit: Hit, peers: dict[int, list[PullRequest]]) -> PullRequestNode:
    beside = peers.setdefault(hit.served.id, [])
    beside.append(hit.pull_request)
    return PullRequestNode(hit.served, hit.pull_request, peers=beside)


def _node(scope: Scope, text: str) -> Any:
    named = read_node_id(text)
    served = scope.asked.visible(scope.asked.folder.by_id(named.numbers[0])) if named else None
    if named is None or served is None:
        return None
    if named.kind is Kind.REPOSITORY:
        return RepositoryNode(served)
    thread = served.tracker().thread(thread_number(served.id, named.numbers[1])) if len(named.numbers) > 1 else None
    if thread is None:
        return None
    if named.kind is Kind.COMMENT:
        position = named.numbers[2] if len(named.numbers) == 3 else len(thread.comments)
        return CommentNode(served, thread, position) if position < len(thread.comments) else None
    node = thread_node(served, thread)
    return node if node.kind is named.kind else None
