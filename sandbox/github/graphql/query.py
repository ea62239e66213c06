"""The root of every query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, read_node_id, thread_number
from sandbox.github.searching import BadQueryError, Hit, parse_query, search_repositories, search_threads
from sandbox.github.threads import PullRequest, Thread

from .connections import Connection, Edge, PageInfo, connect
from .errors import NotFoundError
from .events import CommentNode
from .git_nodes import BlobNode, CommitNode, TreeNode
from .nodes import RepositoryNode, Scope, UserNode
from .thread_nodes import IssueNode, PullRequestNode, thread_node

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo


@dataclass(frozen=True)
class RateLimitNode:
    """The budget after this query."""

    scope: Scope

    @property
    def cost(self) -> int:
        """Points of this query."""
        return self.scope.cost

    @property
    def node_count(self) -> int:
        """Nodes that it may return at most."""
        return self.scope.node_count

    @property
    def limit(self) -> int:
        """Points in a window."""
        return self.scope.rate.limit

    @property
    def used(self) -> int:
        """Points used in this window."""
        return self.scope.rate.used

    @property
    def remaining(self) -> int:
        """Points left in this window."""
        return self.scope.rate.remaining

    @property
    def reset_at(self) -> datetime:
        """When the window ends."""
        return datetime.fromtimestamp(self.scope.rate.reset, UTC)


@dataclass(frozen=True)
class SearchConnection:
    """A page of results; the counts tell the whole, the nodes end at the cap."""

    page: Connection
    issue_count: int = 0
    repository_count: int = 0

    @property
    def nodes(self) -> Sequence[Any]:
        """The results."""
        return self.page.nodes

    @property
    def edges(self) -> Sequence[Edge]:
        """The results with cursors."""
        return self.page.edges

    @property
    def page_info(self) -> PageInfo:
        """Says that there is no more at the cap."""
        return self.page.page_info


class Query:
    """`type Query`."""

    def rate_limit(self, info: GraphQLResolveInfo) -> RateLimitNode:
        """The budget."""
        return RateLimitNode(info.context)

    def viewer(self, info: GraphQLResolveInfo) -> UserNode:
        """Who asks."""
        return UserNode(info.context.asked.account.login)

    def repository(
        self,
        info: GraphQLResolveInfo,
        owner: str,
        name: str,
        followRenames: bool = True,
    ) -> RepositoryNode:
        """The repository of that name, former names included unless told otherwise."""
        scope: Scope = info.context
        full = f"{owner}/{name}"
        library = scope.asked.library
        shelf = library.current(full) or (library.former(full) if followRenames else None)
        shelf = scope.asked.visible(shelf)
        if shelf is None:
            raise NotFoundError(f"Could not resolve to a Repository with the name '{full}'.")
        return RepositoryNode(shelf)

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

    def search(self, info: GraphQLResolveInfo, query: str, type: str, **page: Any) -> SearchConnection:
        """Issues and pull requests, or repositories."""
        asked = info.context.asked
        cap = asked.limits.search_cap
        try:
            parsed = parse_query(query)
        except BadQueryError:
            return SearchConnection(connect((), page))
        if type == "REPOSITORY":
            shelves: list[Shelf] = search_repositories(asked.library, parsed, private=asked.sees_private)
            return SearchConnection(connect(shelves[:cap], page, RepositoryNode), repository_count=len(shelves))
        hits = search_threads(asked.library, parsed, private=asked.sees_private)
        peers: dict[int, list[PullRequest]] = {}
        connection = connect(hits[:cap], page, lambda hit: _thread(hit, peers))
        return SearchConnection(connection, issue_count=len(hits))


def _thread(hit: Hit, peers: dict[int, list[PullRequest]]) -> IssueNode | PullRequestNode:
    together = peers.setdefault(hit.shelf.id, [])
    if isinstance(hit.thread, PullRequest):
        together.append(hit.thread)
    return thread_node(hit.shelf, hit.thread, together)


def _node(scope: Scope, text: str) -> Any:
    named = read_node_id(text)
    if named is None:
        return None
    if named.kind is Kind.USER and scope.asked.account and named.numbers == (scope.asked.account.id,):
        return UserNode(scope.asked.account.login)
    shelf = scope.asked.visible(scope.asked.library.by_id(named.numbers[0]))
    if shelf is None:
        return None
    if named.kind is Kind.REPOSITORY:
        return RepositoryNode(shelf)
    if named.kind in (Kind.COMMIT, Kind.TREE, Kind.BLOB) and len(named.numbers) == 6:
        oid = "".join(f"{number:08x}" for number in named.numbers[1:])
        return {Kind.COMMIT: CommitNode, Kind.TREE: TreeNode, Kind.BLOB: BlobNode}[named.kind](shelf, oid)
    if named.kind not in (Kind.PULL_REQUEST, Kind.ISSUE, Kind.COMMENT) or len(named.numbers) < 2:
        return None
    number = thread_number(shelf.id, named.numbers[1])
    tracker = shelf.tracker()
    if named.kind is Kind.COMMENT:
        return _comment(shelf, tracker.thread(number), *named.numbers[2:])
    if named.kind is Kind.PULL_REQUEST:
        pull_request = tracker.pull_requests.get(number)
        return PullRequestNode(shelf, pull_request) if pull_request else None
    issue = tracker.issues.get(number)
    return IssueNode(shelf, issue) if issue else None


def _comment(shelf: Shelf, owner: Thread | None, position: int = -1) -> CommentNode | None:
    if owner is None or not 0 <= position < len(owner.comments):
        return None
    return CommentNode(thread_node(shelf, owner), position, owner.comments[position])
