"""People, versions of texts, comments: nodes that lead no further. Attributes are fields, in snake case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from formulacode_dagster.git.log import login
from formulacode_dagster.offline.side_file import Comment, Edit
from sandbox.github.node_ids import Kind, node_id, thread_id
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import Thread

from .connections import Connection, connect

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo


@dataclass(frozen=True)
class UserNode:
    """A user or a bot."""

    login: str

    @property
    def typename(self) -> str:
        """The concrete type."""
        return "Bot" if self.login.endswith("[bot]") else "User"


def actor(login: str | None) -> UserNode | None:
    """The user *login*; null for a deleted account."""
    return UserNode(login) if login else None


@dataclass(frozen=True)
class NamedNode:
    """A label, a language or a branch."""

    name: str


@dataclass(frozen=True)
class CommitNode:
    """A commit, by its hash."""

    oid: str


@dataclass(frozen=True)
class EditNode:
    """A version of a body; `diff` is its whole text, null when it was deleted."""

    edited_at: datetime
    diff: str | None


def edits_page(versions: Sequence[Edit], page: dict[str, Any]) -> Connection:
    """A page of *versions*, newest first; none when the text was never edited."""
    return connect(versions[::-1], lambda one: EditNode(one.edited_at, None if one.deleted_at else one.body), **page)


@dataclass(frozen=True)
class CommentNode:
    """A comment, the one at *position* of *thread*."""

    served: ServedRepository
    thread: Thread
    position: int
    typename: ClassVar[str] = "IssueComment"

    @property
    def _comment(self) -> Comment:
        return self.thread.comments[self.position]

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(Kind.COMMENT, self.served.id, thread_id(self.served.id, self.thread.number), self.position)

    @property
    def author(self) -> UserNode | None:
        """Who wrote it."""
        return actor(login(self._comment.author))

    @property
    def body(self) -> str:
        """Markdown, in its newest version."""
        return self._comment.text

    @property
    def created_at(self) -> datetime:
        """When it was written."""
        return self._comment.created_at

    @property
    def last_edited_at(self) -> datetime | None:
        """When it was last edited."""
        return self._comment.edited_at

    def user_content_edits(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Versions of its body."""
        return edits_page(self._comment.versions, page)
