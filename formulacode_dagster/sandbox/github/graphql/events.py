"""Comments and timeline entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from formulacode_dagster.sandbox.github.node_ids import Kind, node_id, stable_id
from formulacode_dagster.sandbox.github.threads import Issue, login, utc
from formulacode_dagster.sandbox.github.timeline import Event, Happening, events_of
from formulacode_dagster.sandbox.side_file import Comment

from .git_nodes import CommitNode
from .nodes import RepositoryNode, UserNode, actor
from .thread_base import ThreadNode
from .thread_nodes import IssueNode, PullRequestNode, thread_node


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
        """Markdown."""
        return self.comment.body

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


@dataclass(frozen=True)
class CrossReferencedNode(EventNode):
    """Another thread mentions this one."""

    is_cross_repository: bool = False
    kind: ClassVar[Kind] = Kind.CROSS_REFERENCED
    typename: ClassVar[str] = "CrossReferencedEvent"

    @property
    def referenced_at(self) -> datetime:
        """When."""
        return self.event.created_at

    @property
    def source(self) -> IssueNode | PullRequestNode | None:
        """What mentions."""
        return thread_node(self.owner.shelf, self.event.source) if self.event.source else None

    @property
    def target(self) -> ThreadNode:
        """What is mentioned."""
        return self.owner

    @property
    def will_close_target(self) -> bool:
        """Whether the merge of the source closes the target."""
        source = self.source
        return isinstance(source, PullRequestNode) and self.owner.number in source.thread.closes


@dataclass(frozen=True)
class ClosedNode(EventNode):
    """It was closed."""

    kind: ClassVar[Kind] = Kind.CLOSED
    typename: ClassVar[str] = "ClosedEvent"

    @property
    def closer(self) -> PullRequestNode | None:
        """The pull request that closed it."""
        return PullRequestNode(self.owner.shelf, self.event.closer) if self.event.closer else None

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


def timeline(owner: ThreadNode, kinds: Sequence[str] | None, since: str | None) -> list[Any]:
    """The entries of *owner*'s timeline, of *kinds* only, from *since* on."""
    after = utc(datetime.fromisoformat(since)) if since else None
    return [
        _node(owner, event)
        for event in events_of(owner.shelf, owner.thread)
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
        case _:
            return ClosedNode(owner, event)
