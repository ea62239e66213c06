"""GitHub's answers to the merged-window query, typed; anything missing is an error, never a default."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from formulacode_dagster.models.base import first_fault
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

Node = TypeVar("Node")


class GitHubRecord(BaseModel):
    """A record of GitHub's: camelCase, and free to carry more than we read."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class PageInfo(GitHubRecord):
    """Cursor of a connection."""

    has_next_page: bool
    end_cursor: str | None = None


class Connection(GitHubRecord, Generic[Node]):
    """A page of a connection; a null node is one that GitHub failed to load."""

    total_count: int
    page_info: PageInfo
    nodes: tuple[Node | None, ...]


class Actor(GitHubRecord):
    """Somebody; null in GitHub's answers for a deleted account."""

    login: str


class Authored(GitHubRecord):
    """A text with its author."""

    id: str
    body: str
    created_at: datetime
    author: Actor | None = None


class Written(Authored):
    """A text with its author, in its newest version."""

    last_edited_at: datetime | None = None
    """When that version was written; None when it is the first one."""


class RepositoryRef(GitHubRecord):
    """The repository a node belongs to."""

    name_with_owner: str
    database_id: int | None = None


class RepositoryNode(GitHubRecord):
    """Metadata of a repository."""

    database_id: int
    id: str
    name_with_owner: str
    is_fork: bool
    is_archived: bool
    is_empty: bool
    is_private: bool
    stargazer_count: int
    description: str | None = None
    disk_usage: int | None = None
    archived_at: datetime | None = None
    primary_language: NamedNode | None = None
    default_branch_ref: NamedNode | None = None


class RepositoryStatus(GitHubRecord):
    """Properties of a repository that can change between discovery and intake."""

    database_id: int
    name_with_owner: str
    archived_at: datetime | None = None
    is_empty: bool
    is_private: bool


class MergeNode(GitHubRecord):
    """A pull request of which only its merge is of interest."""

    number: int
    merged_at: datetime | None = None
    updated_at: datetime


class MergeList(GitHubRecord):
    """Pull requests of a repository."""

    page_info: PageInfo
    nodes: tuple[MergeNode | None, ...]


class RepositoryMerges(GitHubRecord):
    """A repository's own list of what it merged."""

    pull_requests: MergeList


class NamedNode(GitHubRecord):
    """A label, a language, a branch."""

    name: str


class CommitRef(GitHubRecord):
    """A commit."""

    oid: str


class CountOnly(GitHubRecord):
    """A connection of which only the size was asked."""

    total_count: int


class IssueNode(Written):
    """An issue that a pull request closes."""

    number: int
    title: str
    repository: RepositoryRef


class EditNode(GitHubRecord):
    """A version of an issue's body; `diff` is its whole text, null when it was deleted."""

    edited_at: datetime
    diff: str | None = None


class PullRequestNode(Authored):
    """A merged pull request."""

    number: int
    title: str
    merged_at: datetime
    base_ref_name: str
    head_ref_oid: str
    merge_commit: CommitRef | None = None
    changed_files: int
    commits: CountOnly
    repository: RepositoryRef
    labels: Connection[NamedNode] | None = None
    closing_issues_references: Connection[IssueNode] | None = None


class SearchCount(GitHubRecord):
    """The size of a search."""

    issue_count: int


class SearchPage(GitHubRecord):
    """A page of search results; `issue_count` is the size of the whole."""

    issue_count: int
    page_info: PageInfo
    nodes: tuple[PullRequestNode | None, ...]


AnsweredT = TypeVar("AnsweredT", bound=GitHubRecord)


def read(model: type[AnsweredT], raw: Any, what: str) -> AnsweredT:
    """Return *raw* as *model*; raises ItemFailure (`incomplete`) if GitHub left out required fields."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        words = f"GitHub's answer about {what} lacks something"
        raise ItemFailure(FailureKind.INCOMPLETE, words, why=first_fault(error)) from error


RepositoryNode.model_rebuild()
