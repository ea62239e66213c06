"""A merged pull request, its true base and its patch."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen
from .identity import item_key, task_id


class MergeKind(StrEnum):
    """How the pull request landed, read from the commits, never from the title."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


class LinkedIssue(Frozen):
    """An issue that the pull request closes, as it stood before the merge."""

    repository: str
    number: int
    title: str
    body: str = ""
    author: str = ""
    created_at: datetime


class ChangedFile(Frozen):
    """One path of the patch. Counts are lines; both are 0 for a binary file."""

    path: str
    status: str = Field(description="git's letter: A, M, D, R, T")
    additions: int = 0
    deletions: int = 0
    binary: bool = False
    old_path: str | None = None


class MergedPullRequest(Frozen):
    """What GitHub tells about a pull request with `merged_at` in the window."""

    month: str
    repository_id: int
    repository: str = Field(description="`owner/repo` as of intake")
    number: int
    title: str
    body: str = ""
    author: str = ""
    labels: tuple[str, ...] = ()
    created_at: datetime
    merged_at: datetime
    base_ref: str
    head_sha: str
    merge_commit_sha: str
    commit_count: int = 0
    changed_files: int = 0
    linked_issues: tuple[LinkedIssue, ...] = ()

    @property
    def item(self) -> str:
        """`owner/repo#number`."""
        return item_key(self.repository, self.number)

    @property
    def task_id(self) -> str:
        """`owner__repo-number`."""
        return task_id(self.repository, self.number)


class Change(Frozen):
    """What the pull request did to the code, read from the mirror: *base + patch = the tree after the merge*."""

    month: str
    repository_id: int
    number: int
    merge_kind: MergeKind
    base_sha: str
    merge_tree_sha: str = Field(description="the tree after the merge, which base + patch was verified to equal")
    patch_sha256: str = Field(description="key of the compressed patch in the `patches` table")
    patch_bytes: int
    files: tuple[ChangedFile, ...]


class PullRequest(Frozen):
    """One row of `pull_requests`: GitHub's facts and the change behind them."""

    facts: MergedPullRequest
    change: Change

    @property
    def key(self) -> tuple[int, int]:
        """(repository id, number): the identity that survives renames."""
        return self.facts.repository_id, self.facts.number

    @property
    def item(self) -> str:
        """`owner/repo#number`."""
        return self.facts.item

    @property
    def task_id(self) -> str:
        """`owner__repo-number`."""
        return self.facts.task_id


class IntakeCount(Frozen):
    """How many merged pull requests GitHub reports for a repository's window, and how many were taken in."""

    month: str
    repository_id: int
    repository: str
    reported: int
    stored: int
    checksum: str = Field(default="", description="of the rows: equal for two intakes of the same closed month")
    added: int = Field(default=0, description="rows of this intake that the one before had not")
    changed: int = Field(default=0, description="rows whose merge, base or text differ from the intake before")
    removed: int = Field(default=0, description="rows of the intake before that are not merged in the month any more")
