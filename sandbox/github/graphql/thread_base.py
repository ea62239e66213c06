"""What the nodes of issues and pull requests have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from formulacode_dagster.git.log import login
from formulacode_dagster.offline.side_file import Edit
from sandbox.github.context import WEB
from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, node_id, thread_id
from sandbox.github.threads import State, Thread, utc

from .connections import Connection, connect
from .nodes import LabelNode, RepositoryNode, UserNode, actor

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo


@dataclass(frozen=True)
class EditNode:
    """A version of a body; `diff` is its whole text, null when it was deleted. `within` are the owner's numbers."""

    within: tuple[int, ...]
    author: str | None
    position: int
    edit: Edit
    typename: ClassVar[str] = "UserContentEdit"

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(Kind.EDIT, *self.within, self.position)

    @property
    def deleted_at(self) -> datetime | None:
        """When its text was deleted."""
        return utc(self.edit.deleted_at) if self.edit.deleted_at else None

    @property
    def edited_at(self) -> datetime:
        """When it was written."""
        return utc(self.edit.edited_at)

    created_at = updated_at = edited_at

    @property
    def editor(self) -> UserNode | None:
        """Who wrote it."""
        return actor(login(self.edit.author or self.author))

    @property
    def diff(self) -> str | None:
        """The text."""
        return None if self.edit.deleted_at else self.edit.body


def edits_page(
    within: tuple[int, ...], author: str | None, versions: Sequence[Edit], page: dict[str, Any]
) -> Connection:
    """A page of *versions*, newest first."""
    numbered = list(enumerate(versions))[::-1]
    return connect(numbered, page, lambda one: EditNode(within, author, *one))


@dataclass(frozen=True)
class ThreadNode:
    """What issues and pull requests have in common."""

    shelf: Shelf
    thread: Thread
    locked: bool = False
    kind: ClassVar[Kind]
    page: ClassVar[str]

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(self.kind, self.shelf.id, self.database_id)

    @property
    def database_id(self) -> int:
        """Database id."""
        return thread_id(self.shelf.id, self.thread.number)

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
    def state(self) -> State:
        """OPEN, CLOSED or MERGED."""
        return self.thread.state

    @property
    def closed(self) -> bool:
        """Whether it is not open."""
        return self.thread.state is not State.OPEN

    @property
    def closed_at(self) -> datetime | None:
        """When it was closed or merged."""
        return self.thread.closed_at

    @property
    def created_at(self) -> datetime:
        """When it was opened."""
        return self.thread.created_at

    @property
    def updated_at(self) -> datetime:
        """The last thing that happened to it."""
        return self.thread.updated_at

    @property
    def last_edited_at(self) -> datetime | None:
        """When its body was last edited."""
        return utc(self.thread.versions[-1].edited_at) if self.thread.versions else None

    @property
    def url(self) -> str:
        """Its page."""
        return f"{WEB}/{self.shelf.name}/{self.page}/{self.thread.number}"

    @property
    def author(self) -> UserNode | None:
        """Who opened it."""
        return actor(self.thread.author)

    @property
    def repository(self) -> RepositoryNode:
        """Where it was opened."""
        return RepositoryNode(self.shelf)

    def labels(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Its labels."""
        return connect(self.thread.labels, page, lambda name: LabelNode(self.shelf, name))

    def comments(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Its comments, oldest first."""
        from .events import CommentNode

        numbered = list(enumerate(self.thread.comments))
        return connect(numbered, page, lambda one: CommentNode(self, *one))

    def timeline_items(
        self,
        info: GraphQLResolveInfo,
        itemTypes: Sequence[str] | None = None,
        since: str | None = None,
        skip: int = 0,
        **page: Any,
    ) -> Connection:
        """What happened to it."""
        from .events import timeline

        return connect(timeline(info.context.asked, self, itemTypes, since)[skip:], page)

    def user_content_edits(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Versions of its body, newest first; none when it was never edited."""
        return edits_page((self.shelf.id, self.database_id), self.thread.author, self.thread.versions, page)
