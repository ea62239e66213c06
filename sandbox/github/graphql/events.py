"""Comments and timeline entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from formulacode_dagster.git.log import login
from formulacode_dagster.offline.side_file import Comment
from sandbox.github.context import Asked
from sandbox.github.node_ids import Kind, node_id, stable_id
from sandbox.github.threads import Issue, PullRequest, utc
from sandbox.github.timeline import Event, Happening, closed_issues, events_of

from .connections import Connection
from .git_nodes import CommitNode
from .nodes import RepositoryNode, UserNode, actor
from .thread_base import ThreadNode, edits_page
from .thread_nodes import IssueNode, PullRequestNode, thread_node

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo


@dataclass(frozen=True)
class CommentNode:
    """A comment."""

    owner: ThreadNode
    position: int
    comment: Comment
    typename: ClassVar[str] = "IssueComment"

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(Kind.COMMENT, self.owner.shelf.id, self.owner.database_id, self.position)

    @property
    def database_id(self) -> int:
        """Database id."""
        return stable_id("comment", self.owner.shelf.id, self.owner.number, self.position)

    @property
    def author(self) -> UserNode | None:
        """Who wrote it."""
        return actor(login(self.comment.author))

    @property
    def body(self) -> str:
        """Markdown, in its newest version."""
        return self.comment.text

    @property
    def created_at(self) -> datetime:
        """When it was written."""
        return utc(self.comment.created_at)

    @property
    def last_edited_at(self) -> datetime | None:
        """When it was last edited."""
        return utc(self.comment.edited_at) if self.comment.edited_at else None

    @property
    def updated_at(self) -> datetime:
        """When it was written or edited."""
        return self.last_edited_at or self.created_at

    @property
    def url(self) -> str:
        """Its place on the page."""
        return f"{self.owner.url}#issuecomment-{self.database_id}"

    @property
    def repository(self) -> RepositoryNode:
        """Where it was written."""
        return self.owner.repository

    def user_content_edits(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Versions of its body, newest first; none when it was never edited."""
        within = (self.owner.shelf.id, self.owner.database_id, self.position)
        return edits_page(within, self.comment.author, self.comment.versions, page)

    @property
    def issue(self) -> ThreadNode:
        """The issue; a pull request is refused by the schema, as on GitHub it has an issue behind it."""
        return self.owner

    @property
    def pull_request(self) -> PullRequestNode | None:
        """The pull request, where it was written on one."""
        return self.owner if isinstance(self.owner, PullRequestNode) else None


@dataclass(frozen=True)
class EventNode:
    """What all events have."""

    owner: ThreadNode
    event: Event
    kind: ClassVar[Kind]

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(self.kind, self.owner.shelf.id, self.owner.database_id, self.event.position)

    @property
    def actor(self) -> UserNode | None:
        """Who did it."""
        return actor(self.event.actor)

    @property
    def created_at(self) -> datetime:
        """When."""
        return self.event.created_at

    @property
    def url(self) -> str:
        """Its place on the page."""
        return f"{self.owner.url}#event-{stable_id(self.id)}"

    @property
    def is_cross_repository(self) -> bool:
        """Whether the other side is in another repository."""
        return self.event.shelf is not self.owner.shelf

    @property
    def other(self) -> IssueNode | PullRequestNode | None:
        """The other side."""
        return thread_node(self.event.shelf, self.event.other) if self.event.other else None


@dataclass(frozen=True)
class CrossReferencedNode(EventNode):
    """Another thread mentions this one."""

    kind: ClassVar[Kind] = Kind.CROSS_REFERENCED
    typename: ClassVar[str] = "CrossReferencedEvent"

    @property
    def referenced_at(self) -> datetime:
        """When."""
        return self.event.created_at

    @property
    def source(self) -> IssueNode | PullRequestNode | None:
        """What mentions."""
        return self.other

    @property
    def target(self) -> ThreadNode:
        """What is mentioned."""
        return self.owner

    def will_close_target(self, info: GraphQLResolveInfo) -> bool:
        """Whether the merge of the source closes the target."""
        source = self.event.other
        if not isinstance(source, PullRequest):
            return False
        return (self.owner.shelf, self.owner.thread) in closed_issues(info.context.asked, self.event.shelf, source)


@dataclass(frozen=True)
class ConnectedNode(EventNode):
    """Somebody linked an issue with the pull request that closes it."""

    kind: ClassVar[Kind] = Kind.CONNECTED
    typename: ClassVar[str] = "ConnectedEvent"

    @property
    def source(self) -> ThreadNode:
        """The side whose timeline this is."""
        return self.owner

    @property
    def subject(self) -> IssueNode | PullRequestNode | None:
        """The side that was linked with it."""
        return self.other


@dataclass(frozen=True)
class RenamedTitleNode(EventNode):
    """It was given another title."""

    kind: ClassVar[Kind] = Kind.RENAMED
    typename: ClassVar[str] = "RenamedTitleEvent"

    @property
    def previous_title(self) -> str:
        """The title until then."""
        return self.event.title.previous if self.event.title else ""

    @property
    def current_title(self) -> str:
        """The title from then on."""
        return self.event.title.current if self.event.title else ""

    @property
    def subject(self) -> ThreadNode:
        """What was renamed."""
        return self.owner


@dataclass(frozen=True)
class ReferencedNode(EventNode):
    """A commit mentions this one."""

    is_direct_reference: bool = False
    kind: ClassVar[Kind] = Kind.REFERENCED
    typename: ClassVar[str] = "ReferencedEvent"

    @property
    def commit(self) -> CommitNode | None:
        """The commit."""
        known = self.event.commit
        return CommitNode(self.event.shelf, known.sha, known) if known else None

    @property
    def commit_repository(self) -> RepositoryNode:
        """Where the commit is."""
        return RepositoryNode(self.event.shelf)

    @property
    def subject(self) -> ThreadNode:
        """What is mentioned."""
        return self.owner


@dataclass(frozen=True)
class ClosedNode(EventNode):
    """It was closed."""

    kind: ClassVar[Kind] = Kind.CLOSED
    typename: ClassVar[str] = "ClosedEvent"

    @property
    def closer(self) -> IssueNode | PullRequestNode | None:
        """The pull request that closed it."""
        return self.other

    @property
    def state_reason(self) -> str | None:
        """Why, for an issue."""
        return "COMPLETED" if isinstance(self.owner.thread, Issue) else None


@dataclass(frozen=True)
class MergedNode(EventNode):
    """It was merged."""

    owner: PullRequestNode
    kind: ClassVar[Kind] = Kind.MERGED
    typename: ClassVar[str] = "MergedEvent"

    @property
    def commit(self) -> CommitNode | None:
        """The merge commit."""
        return self.owner.merge_commit

    @property
    def merge_ref_name(self) -> str:
        """The branch that it was merged into."""
        return self.owner.base_ref_name

    @property
    def pull_request(self) -> PullRequestNode:
        """What was merged."""
        return self.owner


def timeline(asked: Asked, owner: ThreadNode, kinds: Sequence[str] | None, since: str | None) -> list[Any]:
    """The entries of *owner*'s timeline, of *kinds* only, from *since* on."""
    after = utc(datetime.fromisoformat(since)) if since else None
    return [
        _node(owner, event)
        for event in events_of(asked, owner.shelf, owner.thread)
        if (not kinds or event.kind in kinds) and (after is None or event.created_at >= after)
    ]


def _node(owner: ThreadNode, event: Event) -> CommentNode | EventNode:
    match event.kind:
        case Happening.COMMENT if event.comment is not None:
            return CommentNode(owner, event.position, event.comment)
        case Happening.MERGED if isinstance(owner, PullRequestNode):
            return MergedNode(owner, event)
        case Happening.CROSS_REFERENCED:
            return CrossReferencedNode(owner, event)
        case Happening.CONNECTED:
            return ConnectedNode(owner, event)
        case Happening.RENAMED:
            return RenamedTitleNode(owner, event)
        case Happening.REFERENCED:
            return ReferencedNode(owner, event)
        case _:
            return ClosedNode(owner, event)
