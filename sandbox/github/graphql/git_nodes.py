"""Commits, trees, blobs and refs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from formulacode_dagster.git.command import GitError, git
from formulacode_dagster.git.log import Commit, find_commit, from_epoch, login_of
from sandbox.github.changes import Size, Span, sizes_of
from sandbox.github.context import WEB
from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, node_id, stable_id

from .connections import Connection, connect
from .errors import AnswerError
from .nodes import RepositoryNode, UserNode, actor

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo

_BINARY_PROBE = 8_000
_LARGEST_TEXT = 512_000


@dataclass(frozen=True)
class GitActorNode:
    """Author or committer."""

    name: str
    email: str
    date: datetime

    @property
    def user(self) -> UserNode | None:
        """The account behind the address."""
        return actor(login_of(self.name, self.email))


@dataclass(frozen=True)
class ObjectNode:
    """What all git objects have."""

    shelf: Shelf
    oid: str
    kind: ClassVar[Kind]

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(self.kind, self.shelf.id, *(int(self.oid[i : i + 8], 16) for i in range(0, 40, 8)))

    @property
    def abbreviated_oid(self) -> str:
        """The first seven digits."""
        return self.oid[:7]

    @property
    def commit_url(self) -> str:
        """Its page."""
        return f"{WEB}/{self.shelf.name}/commit/{self.oid}"

    @property
    def repository(self) -> RepositoryNode:
        """Where it is."""
        return RepositoryNode(self.shelf)


@dataclass(frozen=True)
class CommitNode(ObjectNode):
    """A commit, read only when more than its hash is asked."""

    known: Commit | None = None
    kind: ClassVar[Kind] = Kind.COMMIT
    typename: ClassVar[str] = "Commit"

    @cached_property
    def commit(self) -> Commit:
        """The commit itself."""
        found = self.known or find_commit(self.shelf.path, self.oid)
        if found is None:
            raise AnswerError("NOT_FOUND", f"Could not resolve to a node with the global id of '{self.id}'.")
        return found

    @property
    def url(self) -> str:
        """Its page."""
        return self.commit_url

    @property
    def message(self) -> str:
        """The whole message."""
        return self.commit.message

    @property
    def message_headline(self) -> str:
        """The first line."""
        return self.commit.subject

    @property
    def message_body(self) -> str:
        """All but the first line."""
        return self.commit.body

    @property
    def authored_date(self) -> datetime:
        """When it was written."""
        return from_epoch(self.commit.authored)

    @property
    def committed_date(self) -> datetime:
        """When it was committed."""
        return from_epoch(self.commit.committed)

    @property
    def author(self) -> GitActorNode:
        """Who wrote it."""
        return GitActorNode(self.commit.author, self.commit.author_email, self.authored_date)

    @property
    def committer(self) -> GitActorNode:
        """Who committed it."""
        return GitActorNode(self.commit.committer, self.commit.committer_email, self.committed_date)

    @property
    def tree(self) -> TreeNode:
        """The files."""
        return TreeNode(self.shelf, git(self.shelf.path, "rev-parse", f"{self.oid}^{{tree}}").decode().strip())

    @cached_property
    def _size(self) -> Size:
        return sizes_of(self.shelf.path, [Span((*self.commit.parents, "")[0], self.oid)])[0]

    @property
    def additions(self) -> int:
        """Added lines."""
        return self._size.additions

    @property
    def deletions(self) -> int:
        """Deleted lines."""
        return self._size.deletions

    @property
    def changed_files_if_available(self) -> int:
        """Changed files."""
        return self._size.files

    def parents(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Its parents."""
        return connect(self.commit.parents, page, lambda sha: CommitNode(self.shelf, sha))

    def associated_pull_requests(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """The pull requests that it merged."""
        from .thread_nodes import PullRequestNode

        found = [
            one for one in self.shelf.tracker().pull_requests.values() if self.oid in (one.merge_sha, one.head_sha)
        ]
        return connect(found, page, lambda one: PullRequestNode(self.shelf, one))


@dataclass(frozen=True)
class TreeEntryNode:
    """A line of a tree."""

    shelf: Shelf
    name: str
    path: str
    type: str
    mode: int
    oid: str
    size: int

    @property
    def object(self) -> Any:
        """What it points to."""
        return git_object(self.shelf, self.oid) if self.type != "commit" else None


@dataclass(frozen=True)
class TreeNode(ObjectNode):
    """A folder."""

    kind: ClassVar[Kind] = Kind.TREE
    typename: ClassVar[str] = "Tree"

    @property
    def entries(self) -> list[TreeEntryNode]:
        """What it holds."""
        found = []
        for line in git(self.shelf.path, "ls-tree", "-l", "-z", self.oid).decode("utf-8", "replace").split("\0"):
            if line:
                facts, _, name = line.partition("\t")
                mode, kind, oid, size = facts.split()
                found.append(
                    TreeEntryNode(self.shelf, name, name, kind, int(mode, 8), oid, int(size) if size != "-" else 0)
                )
        return found


@dataclass(frozen=True)
class BlobNode(ObjectNode):
    """A file."""

    kind: ClassVar[Kind] = Kind.BLOB
    typename: ClassVar[str] = "Blob"

    @cached_property
    def content(self) -> bytes:
        """Its bytes."""
        return git(self.shelf.path, "cat-file", "blob", self.oid)

    @property
    def byte_size(self) -> int:
        """How many bytes."""
        return len(self.content)

    @property
    def is_binary(self) -> bool:
        """Whether it has a zero byte near its start."""
        return b"\0" in self.content[:_BINARY_PROBE]

    @property
    def is_truncated(self) -> bool:
        """Whether `text` is cut short."""
        return len(self.content) > _LARGEST_TEXT

    @property
    def text(self) -> str | None:
        """Null for a binary file."""
        return None if self.is_binary else self.content[:_LARGEST_TEXT].decode("utf-8", "replace")


@dataclass(frozen=True)
class RefNode:
    """A branch."""

    shelf: Shelf
    name: str
    sha: str
    prefix: str = "refs/heads/"
    typename: ClassVar[str] = "Ref"

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(Kind.REF, self.shelf.id, stable_id("ref", self.name))

    @property
    def target(self) -> CommitNode:
        """Its newest commit."""
        return CommitNode(self.shelf, self.sha)

    @property
    def repository(self) -> RepositoryNode:
        """Where it is."""
        return RepositoryNode(self.shelf)


def git_object(shelf: Shelf, expression: str) -> CommitNode | TreeNode | BlobNode | None:
    """The object that *expression* names, None when there is none."""
    try:
        named = git(shelf.path, "rev-parse", "--verify", "--quiet", "--end-of-options", expression).decode().strip()
        oid = git(shelf.path, "rev-parse", f"{named}^{{}}").decode().strip()
        kind = git(shelf.path, "cat-file", "-t", oid).decode().strip()
    except GitError:
        return None
    nodes: dict[str, type[CommitNode | TreeNode | BlobNode]] = {
        "commit": CommitNode,
        "tree": TreeNode,
        "blob": BlobNode,
    }
    return nodes[kind](shelf, oid)
