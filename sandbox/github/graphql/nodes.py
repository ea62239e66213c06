"""Repositories, people, labels: the objects behind the schema's types. Attributes are the fields, in snake case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from sandbox.github.context import WEB, Asked, Failure, Rate, user_node_id
from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, node_id, stable_id
from sandbox.github.threads import Issue, PullRequest, Thread
from sandbox.github.tracker import newest_first

from .connections import Connection, connect

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo

    from .git_nodes import RefNode
    from .thread_nodes import IssueNode, PullRequestNode


@dataclass(frozen=True)
class Scope:
    """The context of one execution: the call, the state of the budget, what the query costs."""

    asked: Asked
    rate: Rate
    cost: int
    node_count: int
    operation: str = ""
    failure: Failure | None = None


@dataclass(frozen=True)
class UserNode:
    """A user or a bot."""

    login: str

    @property
    def typename(self) -> str:
        """The concrete type."""
        return "Bot" if self.login.endswith("[bot]") else "User"

    @property
    def id(self) -> str:
        """Node id."""
        return user_node_id(self.login)

    @property
    def database_id(self) -> int:
        """Database id."""
        return stable_id("user", self.login.lower())

    @property
    def name(self) -> None:
        """Nobody gives a name here."""
        return

    @property
    def url(self) -> str:
        """Profile."""
        return f"{WEB}/{self.login}"


def actor(login: str | None) -> UserNode | None:
    """The user *login*; null for a deleted account."""
    return UserNode(login) if login else None


@dataclass(frozen=True)
class LanguageNode:
    """A programming language."""

    name: str
    color: None = None
    typename: ClassVar[str] = "Language"

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(Kind.LANGUAGE, stable_id("language", self.name))


@dataclass(frozen=True)
class LabelNode:
    """A label of a repository."""

    shelf: Shelf
    name: str
    color: str = "ededed"
    typename: ClassVar[str] = "Label"

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(Kind.LABEL, self.shelf.id, stable_id("label", self.name.lower()))


@dataclass(frozen=True)
class RepositoryNode:
    """A repository."""

    shelf: Shelf
    is_disabled: bool = False
    typename: ClassVar[str] = "Repository"

    @property
    def id(self) -> str:
        """Node id."""
        return self.shelf.node_id

    @property
    def database_id(self) -> int:
        """Database id."""
        return self.shelf.id

    @property
    def name(self) -> str:
        """Without the owner."""
        return self.shelf.short_name

    @property
    def name_with_owner(self) -> str:
        """`owner/name`, as it is called today."""
        return self.shelf.name

    @property
    def owner(self) -> UserNode:
        """Who owns it."""
        return UserNode(self.shelf.owner)

    @property
    def url(self) -> str:
        """Its page."""
        return f"{WEB}/{self.shelf.name}"

    @property
    def description(self) -> str | None:
        """Null when nobody wrote one."""
        return self.shelf.facts.description or None

    @property
    def stargazer_count(self) -> int:
        """Stars."""
        return self.shelf.facts.stars

    @property
    def is_fork(self) -> bool:
        """Whether it is a fork."""
        return self.shelf.facts.is_fork

    @property
    def is_archived(self) -> bool:
        """Whether it is read-only."""
        return self.shelf.facts.is_archived

    @property
    def archived_at(self) -> datetime | None:
        """Since when it is read-only."""
        facts = self.shelf.facts
        return (facts.archived_at or self.shelf.tracker().last_commit) if facts.is_archived else None

    @property
    def is_private(self) -> bool:
        """Whether only some see it."""
        return self.shelf.facts.is_private

    @property
    def visibility(self) -> str:
        """PUBLIC or PRIVATE."""
        return "PRIVATE" if self.shelf.facts.is_private else "PUBLIC"

    @property
    def disk_usage(self) -> int:
        """Kilobytes of the git repository."""
        return self.shelf.size_kb()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was pushed yet."""
        return not self.shelf.tracker().tip

    @property
    def created_at(self) -> datetime:
        """The oldest commit's time."""
        return self.shelf.tracker().first_commit or datetime.fromisoformat("2008-01-01T00:00:00+00:00")

    @property
    def pushed_at(self) -> datetime | None:
        """The newest commit's time."""
        return self.shelf.tracker().last_commit

    @property
    def updated_at(self) -> datetime:
        """The newest commit's time."""
        return self.pushed_at or self.created_at

    @property
    def primary_language(self) -> LanguageNode | None:
        """Null when none was recognized."""
        return LanguageNode(self.shelf.facts.language) if self.shelf.facts.language else None

    @property
    def default_branch_ref(self) -> RefNode | None:
        """Null when it is empty."""
        from .git_nodes import RefNode

        tracker = self.shelf.tracker()
        return RefNode(self.shelf, tracker.default_branch, tracker.tip) if tracker.tip else None

    def object(self, _info: GraphQLResolveInfo, expression: str | None = None, oid: str | None = None) -> Any:
        """What *expression* (`HEAD:path`) or *oid* names."""
        from .git_nodes import git_object

        return git_object(self.shelf, oid or expression or "")

    def issue(self, info: GraphQLResolveInfo, number: int) -> IssueNode:
        """The issue *number*; a NOT_FOUND error when there is none, or when it is a pull request."""
        from .thread_nodes import IssueNode

        found = self.shelf.tracker().issues.get(number)
        return IssueNode(self.shelf, found) if found else _no_thread(info, "an Issue", number)

    def pull_request(self, info: GraphQLResolveInfo, number: int) -> PullRequestNode:
        """The pull request *number*; a NOT_FOUND error when there is none."""
        from .thread_nodes import PullRequestNode

        found = self.shelf.tracker().pull_requests.get(number)
        return PullRequestNode(self.shelf, found) if found else _no_thread(info, "a PullRequest", number)

    def issue_or_pull_request(self, info: GraphQLResolveInfo, number: int) -> IssueNode | PullRequestNode:
        """Whichever has the *number*."""
        from .thread_nodes import thread_node

        found = self.shelf.tracker().thread(number)
        if found:
            return thread_node(self.shelf, found)
        return self._transferred(info, number) or _no_thread(info, "an issue or pull request", number)

    def _transferred(self, info: GraphQLResolveInfo, number: int) -> IssueNode | None:
        """The issue that had the *number* here, where it is today."""
        from .thread_nodes import IssueNode

        name, _, there = self.shelf.facts.transferred.get(number, "").partition("#")
        shelf = info.context.asked.visible(info.context.asked.library.current(name)) if name else None
        issue = shelf.tracker().issues.get(int(there)) if shelf else None
        return IssueNode(shelf, issue) if shelf and issue else None

    def pull_requests(
        self,
        _info: GraphQLResolveInfo,
        states: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        orderBy: Mapping[str, str] | None = None,
        baseRefName: str | None = None,
        headRefName: str | None = None,
        **page: Any,
    ) -> Connection:
        """Its pull requests, oldest first unless ordered otherwise."""
        from .thread_nodes import PullRequestNode

        found = [
            one
            for one in self.shelf.tracker().pull_requests.values()
            if (not states or one.state in states)
            and (not labels or set(labels) & set(one.labels))
            and baseRefName in (None, one.base_ref)
            and headRefName in (None, one.head_ref)
        ]
        peers: list[PullRequest] = []
        connection = connect(_ordered(found, orderBy), page, lambda one: PullRequestNode(self.shelf, one, peers=peers))
        peers += [node.thread for node in connection.nodes]
        return connection

    def issues(
        self,
        _info: GraphQLResolveInfo,
        states: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        orderBy: Mapping[str, str] | None = None,
        **page: Any,
    ) -> Connection:
        """Its issues, oldest first unless ordered otherwise."""
        from .thread_nodes import IssueNode

        found: list[Issue] = [
            one
            for one in self.shelf.tracker().issues.values()
            if (not states or one.state in states) and (not labels or set(labels) & set(one.labels))
        ]
        return connect(_ordered(found, orderBy), page, lambda one: IssueNode(self.shelf, one))


def _ordered(threads: Sequence[Thread], order: Mapping[str, str] | None) -> list[Thread]:
    by = (order or {}).get("field", "CREATED_AT")
    newest = newest_first(threads)
    if by == "UPDATED_AT":
        newest.sort(key=lambda thread: thread.updated_at, reverse=True)
    elif by == "COMMENTS":
        newest.sort(key=lambda thread: len(thread.comments), reverse=True)
    return newest if (order or {}).get("direction") == "DESC" else newest[::-1]


def _no_thread(info: GraphQLResolveInfo, what: str, number: int) -> Any:
    from .errors import NotFoundError

    raise NotFoundError(f"Could not resolve to {what} with the number of {number}.", info.path.as_list())
