"""A merged pull request, its true base and its patch."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, MonthRow, PullRequestRow
from .identity import item_key, task_id


class CandidateSource(StrEnum):
    """How a change became a candidate of a month."""

    PULL_REQUEST = "pull_request"
    """It was merged in the month, and intake found it."""
    DASHBOARD = "dashboard"
    """Benchmarks of a dashboard got faster at it."""


class MergeKind(StrEnum):
    """How the pull request was merged, read from the commits, never from the title."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


class LinkedIssue(Frozen):
    """An issue that the pull request closes, as it stood before that was opened."""

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


class MergedPullRequest(PullRequestRow):
    """GitHub's data about a pull request with `merged_at` in the window."""

    repository: str = Field(description="`owner/repo` as of intake")
    title: str = Field(description="as of intake")
    body: str = Field(default="", description="markdown, as of intake")
    author: str = Field(default="", description="login; empty if the account is gone")
    labels: tuple[str, ...] = Field(default=(), description="names, as of intake")
    created_at: datetime = Field(description="when it was opened")
    merged_at: datetime = Field(description="instant of the merge, within the month")
    base_ref: str = Field(description="branch it was merged into")
    head_sha: str = Field(description="last commit of its own branch; empty if the source does not have it")
    merge_commit_sha: str = Field(description="commit that landed it")
    commit_count: int = Field(default=0, description="commits of its own branch")
    changed_files: int = Field(default=0, description="files it changes, as GitHub counts them")
    linked_issues: tuple[LinkedIssue, ...] = Field(default=(), description="issues it closes, before it was opened")

    source: CandidateSource = Field(
        default=CandidateSource.PULL_REQUEST,
        description="`pull_request`, or `dashboard` for a commit at which benchmarks of a dashboard got faster",
    )

    @property
    def item(self) -> str:
        """`owner/repo#number`."""
        return item_key(self.repository, self.number)

    @property
    def task_id(self) -> str:
        """`owner__repo-number`."""
        return task_id(self.repository, self.number)


class Change(PullRequestRow):
    """The pull request's change of the code, read from the mirror: *base + patch = the tree after the merge*."""

    merge_kind: MergeKind = Field(description="merge, squash or rebase, read from the commits")
    base_sha: str = Field(description="commit the patch applies to, verified")
    merge_tree_sha: str = Field(description="the tree after the merge, which base + patch was verified to equal")
    patch_sha256: str = Field(description="key of the compressed patch among the `blobs`")
    patch_bytes: int = Field(description="size of the patch")
    files: tuple[ChangedFile, ...] = Field(description="paths of the patch with lines added and deleted")


class PullRequest(Frozen):
    """A merged pull request: GitHub's facts and the change behind them."""

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


class DashboardCandidate(PullRequestRow):
    """A commit at which benchmarks of a dashboard got faster, as a candidate of the month in which it landed."""

    repository: str = Field(description="`owner/repo`")
    sha: str = Field(description="the commit")
    title: str = Field(description="of the pull request as its merge tells it, or first line of the message")
    body: str = Field(description="the rest of the message")
    committed_at: datetime = Field(description="when it was committed")
    dashboard: str = Field(description="name of the dashboard")
    series: str = Field(description="`published` for a site, `results` for raw results")
    method: str = Field(description="how the step was found")
    before_sha: str = Field(description="the last commit that was measured before")
    commits: int = Field(description="commits between the two measured ones; each of them is a candidate")
    improved: int = Field(description="benchmarks that got better between them")
    regressed: int = Field(description="benchmarks that got worse between them")
    median_ratio: float | None = Field(description="median of after / before over these steps")

    @property
    def facts(self) -> MergedPullRequest:
        """A pull request as the stages know it, without asking GitHub."""
        return MergedPullRequest(
            month=self.month,
            repository_id=self.repository_id,
            number=self.number,
            repository=self.repository,
            title=self.title,
            body=self.body,
            created_at=self.committed_at,
            merged_at=self.committed_at,
            base_ref="",
            head_sha="",
            merge_commit_sha=self.sha,
            source=CandidateSource.DASHBOARD,
        )


class IntakeCount(MonthRow):
    """Number of merged pull requests that GitHub reports for a repository's window, and number taken in."""

    repository_id: int = Field(description="GitHub's id of the repository; negative: unknown")
    repository: str = Field(description="`owner/repo` as of intake")
    reported: int = Field(description="merged pull requests of the window, as the source counts them")
    stored: int = Field(description="merged pull requests of the window that were taken in")
    unsearched: tuple[int, ...] = Field(
        default=(), description="numbers of those that search lacks: taken in from the repository's own list"
    )
    checksum: str = Field(default="", description="of the rows: equal for two intakes of the same closed month")
    added: int = Field(default=0, description="rows of this intake that the one before had not")
    changed: int = Field(default=0, description="rows whose merge, base or text differ from the intake before")
    removed: int = Field(default=0, description="rows of the intake before that are not merged in the month any more")
