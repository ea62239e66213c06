"""Repositories, issues and pull requests, which lead to each other. Attributes are fields, in snake case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from sandbox.github.context import Failure, Rate, RequestContext
from sandbox.github.node_ids import Kind, node_id, thread_id
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import Issue, PullRequest, Thread
from sandbox.github.timeline import EventKind, closed_issues, events_of

from .connections import Connection, connect
from .errors import NotFoundError
from .leaves import CommentNode, CommitNode, NamedNode, UserNode, actor, edits_page

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo


@dataclass(frozen=True)
class Scope:
    """The context of one execution: the call, the state of the budget, what the query costs."""

    asked: RequestContext
    rate: Rate
    cost: int
    failure: Failure | None = None


@dataclass(frozen=True)
class RepositoryNode:
    """A repository."""

    served: ServedRepository
    typename: ClassVar[str] = "Repository"

    @property
    def id(self) -> str:
        """Node id."""
        return self.served.node_id

    @property
    def database_id(self) -> int:
        """Database id."""
        return self.served.id

    @property
    def name_with_owner(self) -> str:
        """`owner/name`, as it is called today."""
        return self.served.name

    @property
    def description(self) -> str | None:
        """Null when nobody wrote one."""
        return self.served.facts.description or None

    @property
    def stargazer_count(self) -> int:
        """Stars."""
        return self.served.facts.stars

    @property
    def is_fork(self) -> bool:
        """Whether it is a fork."""
        return self.served.facts.is_fork

    @property
    def is_archived(self) -> bool:
        """Whether it is read-only."""
        return self.served.facts.is_archived

    @property
    def archived_at(self) -> datetime | None:
        """Since when it is read-only."""
        facts = self.served.facts
        return (facts.archived_at or self.served.tracker().last_commit) if facts.is_archived else None

    @property
    def is_private(self) -> bool:
        """Whether only some see it."""
        return self.served.facts.is_private

    @property
    def disk_usage(self) -> int:
        """Kilobytes of the git repository."""
        return self.served.size_kb()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was pushed yet."""
        return not self.served.tracker().tip

    @property
    def primary_language(self) -> NamedNode | None:
        """Null when none was recognized."""
        return NamedNode(self.served.facts.language) if self.served.facts.language else None

    @property
    def default_branch_ref(self) -> NamedNode | None:
        """Null when it is empty."""
        tracker = self.served.tracker()
        return NamedNode(tracker.default_branch) if tracker.tip else None

    def pull_request(self, info: GraphQLResolveInfo, number: int) -> PullRequestNode:
        """The pull request *number*; a NOT_FOUND error when there is none."""
        found = self.served.tracker().pull_requests.get(number)
        return PullRequestNode(self.served, found) if found else _no_thread(info, "a PullRequest", number)

    def issue_or_pull_request(self, info: GraphQLResolveInfo, number: int) -> ThreadNode:
        """Whichever has the *number*; what was transferred answers from where it is today."""
        found = self.served.tracker().thread(number)
        if found:
            return thread_node(self.served, found)
        name, _, there = self.served.facts.transferred.get(number, "").partition("#")
        served = info.context.asked.visible(info.context.asked.folder.current(name)) if name else None
        issue = served.tracker().issues.get(int(there)) if served else None
        return IssueNode(served, issue) if served and issue else _no_thread(info, "an issue or pull request", number)


@dataclass(frozen=True)
class ThreadNode:
    """What issues and pull requests have in common."""

    served: ServedRepository
    thread: Thread
    kind: ClassVar[Kind]

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(self.kind, self.served.id, thread_id(self.served.id, self.thread.number))

    @property
    def number(self) -> int:
        """Number in the repository."""
        return self.thread.number

    @property
    def title(self) -> str:
        """Title."""
        return self.thread.title

    @property
    def body(self) -> str:
        """Markdown, empty when there is none."""
        return self.thread.body

    @property
    def created_at(self) -> datetime:
        """When it was opened."""
        return self.thread.created_at

    @property
    def last_edited_at(self) -> datetime | None:
        """When its body was last edited."""
        return self.thread.versions[-1].edited_at if self.thread.versions else None

    @property
    def author(self) -> UserNode | None:
        """Who opened it."""
        return actor(self.thread.author)

    @property
    def repository(self) -> RepositoryNode:
        """Where it was opened."""
        return RepositoryNode(self.served)

    def comments(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Its comments, oldest first."""
        return connect(
            range(len(self.thread.comments)), lambda position: CommentNode(self.served, self.thread, position), **page
        )

    def timeline_items(
        self, info: GraphQLResolveInfo, itemTypes: Sequence[str] | None = None, **page: Any
    ) -> Connection:
        """What happened to it, as far as the schema has a type for it."""
        events = [
            event
            for event in events_of(info.context.asked, self.served, self.thread)
            if event.kind in _EVENT_TYPES and (not itemTypes or event.kind in itemTypes)
        ]
        return connect(
            events,
            lambda event: EventNode(
                typename=_EVENT_TYPES[event.kind],
                created_at=event.created_at,
                owner=self,
                other=thread_node(event.served, event.other) if event.other else None,
                previous_title=event.title.previous if event.title else "",
            ),
            **page,
        )

    def user_content_edits(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Versions of its body."""
        return edits_page(self.thread.versions, page)


@dataclass(frozen=True)
class IssueNode(ThreadNode):
    """An issue."""

    thread: Issue
    kind: ClassVar[Kind] = Kind.ISSUE
    typename: ClassVar[str] = "Issue"


@dataclass(frozen=True)
class PullRequestNode(ThreadNode):
    """A pull request; `peers` are those of the same page, measured together."""

    thread: PullRequest
    peers: Sequence[PullRequest] = field(default=(), compare=False, repr=False)
    kind: ClassVar[Kind] = Kind.PULL_REQUEST
    typename: ClassVar[str] = "PullRequest"

    @property
    def merged_at(self) -> datetime | None:
        """When it was merged."""
        return self.thread.merged_at

    @property
    def merge_commit(self) -> CommitNode | None:
        """What it became on its base branch; null unless merged."""
        return CommitNode(self.thread.merge_sha) if self.thread.merge_sha else None

    @property
    def base_ref_name(self) -> str:
        """The branch it was opened against."""
        return self.thread.base_ref

    @property
    def head_ref_oid(self) -> str:
        """The tip of its branch, which the repository need not hold."""
        return self.thread.head_sha

    @property
    def changed_files(self) -> int:
        """How many files it changes."""
        return self.served.size(self.thread, self.peers).files

    def labels(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Its labels."""
        return connect(self.thread.labels, NamedNode, **page)

    def commits(self, _info: GraphQLResolveInfo) -> Connection:
        """How many commits it has."""
        return connect(range(self.thread.commit_count))

    def closing_issues_references(self, info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Issues that its merge closes."""
        found = closed_issues(info.context.asked, self.served, self.thread)
        return connect(found, lambda one: IssueNode(*one), **page)


def thread_node(
    served: ServedRepository, thread: Thread, peers: Sequence[PullRequest] = ()
) -> IssueNode | PullRequestNode:
    """The node of *thread*."""
    return IssueNode(served, thread) if isinstance(thread, Issue) else PullRequestNode(served, thread, peers=peers)


_EVENT_TYPES = {
    EventKind.CROSS_REFERENCED: "CrossReferencedEvent",
    EventKind.CONNECTED: "ConnectedEvent",
    EventKind.RENAMED: "RenamedTitleEvent",
}


@dataclass(frozen=True)
class EventNode:
    """An entry of *owner*'s timeline: *other* mentions it or was linked with it, or its title was changed."""

    typename: str
    created_at: datetime
    owner: ThreadNode
    other: ThreadNode | None
    previous_title: str

    @property
    def source(self) -> ThreadNode | None:
        """What mentions; of a link, the side whose timeline this is."""
        return self.owner if self.typename == "ConnectedEvent" else self.other

    @property
    def subject(self) -> ThreadNode | None:
        """The side that was linked with it."""
        return self.other


def _no_thread(info: GraphQLResolveInfo, what: str, number: int) -> Any:
    raise NotFoundError(f"Could not resolve to {what} with the number of {number}.", info.path.as_list())
