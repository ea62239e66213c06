"""Issues; pull requests with their files and commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from formulacode_dagster.git.log import Commit
from sandbox.github.changes import FileChange, Size, files_of, span_of
from sandbox.github.commits import commits_of
from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, node_id
from sandbox.github.threads import Issue, PullRequest, Thread
from sandbox.github.timeline import closed_by, closed_issues

from .connections import Connection, connect
from .git_nodes import CommitNode
from .nodes import RepositoryNode, UserNode, actor
from .thread_base import ThreadNode

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo

CHANGE_TYPES = {
    "added": "ADDED",
    "removed": "DELETED",
    "modified": "MODIFIED",
    "renamed": "RENAMED",
    "copied": "COPIED",
    "changed": "CHANGED",
}


@dataclass(frozen=True)
class IssueNode(ThreadNode):
    """An issue."""

    thread: Issue
    kind: ClassVar[Kind] = Kind.ISSUE
    page: ClassVar[str] = "issues"
    typename: ClassVar[str] = "Issue"

    def state_reason(self, _info: GraphQLResolveInfo) -> str | None:
        """Why it was closed."""
        return "COMPLETED" if self.closed else None

    def closed_by_pull_requests_references(self, info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Pull requests that close it."""
        found = closed_by(info.context.asked, self.shelf, self.thread)
        return connect(found, page, lambda one: PullRequestNode(*one))


@dataclass(frozen=True)
class FileNode:
    """A changed file."""

    change: FileChange

    @property
    def path(self) -> str:
        """Its path after the change."""
        return self.change.path

    @property
    def additions(self) -> int:
        """Added lines."""
        return self.change.additions

    @property
    def deletions(self) -> int:
        """Deleted lines."""
        return self.change.deletions

    @property
    def change_type(self) -> str:
        """What happened to it."""
        return CHANGE_TYPES[self.change.status]


@dataclass(frozen=True)
class PullRequestCommitNode:
    """A commit as part of a pull request."""

    pull_request: PullRequestNode
    known: Commit
    typename: ClassVar[str] = "PullRequestCommit"

    @property
    def id(self) -> str:
        """Node id."""
        return node_id(
            Kind.PULL_REQUEST_COMMIT,
            self.pull_request.shelf.id,
            self.pull_request.database_id,
            int(self.known.sha[:8], 16),
        )

    @property
    def commit(self) -> CommitNode:
        """The commit."""
        return CommitNode(self.pull_request.shelf, self.known.sha, self.known)

    @property
    def url(self) -> str:
        """Its page."""
        return f"{self.pull_request.url}/commits/{self.known.sha}"


@dataclass(frozen=True)
class PullRequestNode(ThreadNode):
    """A pull request; `peers` are those of the same page, measured together."""

    thread: PullRequest
    peers: Sequence[PullRequest] = field(default=(), compare=False, repr=False)
    is_draft: bool = False
    kind: ClassVar[Kind] = Kind.PULL_REQUEST
    page: ClassVar[str] = "pull"
    typename: ClassVar[str] = "PullRequest"

    @property
    def merged(self) -> bool:
        """Whether it was merged."""
        return self.thread.merged_at is not None

    @property
    def merged_at(self) -> datetime | None:
        """When it was merged."""
        return self.thread.merged_at

    @property
    def merged_by(self) -> UserNode | None:
        """Who merged it."""
        return actor(self.thread.merged_by)

    @property
    def merge_commit(self) -> CommitNode | None:
        """What it became on its base branch; null unless merged."""
        return CommitNode(self.shelf, self.thread.merge_sha) if self.thread.merge_sha else None

    @property
    def base_ref_name(self) -> str:
        """The branch it was opened against."""
        return self.thread.base_ref

    @property
    def base_ref_oid(self) -> str:
        """Where its branch forks: as on GitHub, not the commit it was put on."""
        return self.thread.fork_sha or span_of(self.shelf.path, self.thread).before or self.shelf.tracker().tip

    @property
    def head_ref_name(self) -> str:
        """The branch it comes from."""
        return self.thread.head_ref

    @property
    def head_ref_oid(self) -> str:
        """The tip of its branch, which the repository need not hold."""
        return self.thread.head_sha

    @property
    def base_repository(self) -> RepositoryNode:
        """Where it was opened."""
        return RepositoryNode(self.shelf)

    @property
    def is_cross_repository(self) -> bool:
        """Whether it comes from a fork."""
        return (self.thread.author or "").lower() != self.shelf.owner.lower()

    @property
    def changed_files(self) -> int:
        """How many files it changes."""
        return self._size.files

    @property
    def additions(self) -> int:
        """Lines added."""
        return self._size.additions

    @property
    def deletions(self) -> int:
        """Lines deleted."""
        return self._size.deletions

    @property
    def _size(self) -> Size:
        return self.shelf.size(self.thread, self.peers)

    def files(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Its files, by path."""
        return connect(files_of(self.shelf.path, span_of(self.shelf.path, self.thread)), page, FileNode)

    def commits(self, _info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Its commits, oldest first. They are read only when a page of them is asked for."""
        if page.get("first") is None and page.get("last") is None:
            return connect(range(self.thread.commit_count), page)
        known = commits_of(self.shelf.path, self.thread)
        shown = connect(known, page, lambda one: PullRequestCommitNode(self, one))
        return replace(shown, total_count=self.thread.commit_count)

    def closing_issues_references(self, info: GraphQLResolveInfo, **page: Any) -> Connection:
        """Issues that its merge closes."""
        found = closed_issues(info.context.asked, self.shelf, self.thread)
        return connect(found, page, lambda one: IssueNode(*one))


def thread_node(shelf: Shelf, thread: Thread, peers: Sequence[PullRequest] = ()) -> IssueNode | PullRequestNode:
    """The node of *thread*."""
    return IssueNode(shelf, thread) if isinstance(thread, Issue) else PullRequestNode(shelf, thread, peers=peers)
