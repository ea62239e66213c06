"""`sandbox.json`: information that a folder of bare repositories lacks.

It is in the served folder, next to `owner/name.git`. Everything in it is optional: without it, pull requests are
derived from the history (`Merge pull request #N`, `… (#N)`, `refs/pull/N/head`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.pull_request import MergeKind

SIDE_FILE = "sandbox.json"


def _utc(moment: datetime) -> datetime:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(microsecond=0)


Moment = Annotated[datetime, AfterValidator(_utc)]
"""A moment in UTC and whole seconds, as GitHub does; a naive moment counts as UTC."""


class Edit(Frozen):
    """A later version of a body. A deleted one keeps its place in the history without its text."""

    edited_at: Moment
    body: str
    author: str | None = None
    deleted_at: Moment | None = None


class TitleEdit(Frozen):
    """A later title."""

    edited_at: Moment
    title: str
    author: str | None = None


class Comment(Frozen):
    """A comment on an issue or pull request. `body` is as it was first written; `edits` follow."""

    author: str
    body: str
    created_at: Moment
    edits: tuple[Edit, ...] = ()

    @property
    def versions(self) -> tuple[Edit, ...]:
        """Every version, oldest first; none when it was never edited."""
        return versions_of(self.author, self.created_at, self.body, self.edits)

    @property
    def text(self) -> str:
        """The newest version."""
        return self.versions[-1].body if self.edits else self.body

    @property
    def edited_at(self) -> datetime | None:
        """When it was last edited."""
        return self.versions[-1].edited_at if self.edits else None


class IssueFacts(Frozen):
    """An issue of the tracker. `title` and `body` are as it was opened; `titles` and `edits` follow."""

    number: int
    title: str
    body: str = ""
    author: str = "ghost"
    labels: tuple[str, ...] = ()
    created_at: Moment
    closed_at: Moment | None = Field(default=None, description="derived from the pull request that closes it")
    titles: tuple[TitleEdit, ...] = ()
    edits: tuple[Edit, ...] = ()
    comments: tuple[Comment, ...] = ()


class PullRequestFacts(Frozen):
    """Overrides or completes the pull request derived from the history.

    `merge_commit_sha` makes a pull request of a commit whose message names none (a rebase merge has no mark).
    """

    number: int
    title: str | None = None
    body: str | None = None
    author: str | None = None
    labels: tuple[str, ...] = ()
    created_at: Moment | None = None
    merged_at: Moment | None = None
    merge_kind: MergeKind | None = None
    merge_commit_sha: str | None = None
    head_sha: str | None = None
    commit_count: int | None = None
    is_unindexed: bool = Field(default=False, description="search neither counts nor finds it")
    base_ref: str | None = Field(default=None, description="branch it was merged into; the default branch when unset")
    closes: tuple[int | str, ...] = Field(
        default=(), description="issue numbers, or `owner/repo#N`; those that the body does not name are linked by hand"
    )
    titles: tuple[TitleEdit, ...] = Field(default=(), description="later titles")
    edits: tuple[Edit, ...] = Field(default=(), description="later versions of the body")
    comments: tuple[Comment, ...] = ()


class RepositoryFacts(Frozen):
    """Overrides or completes a repository derived from its folder. The key is the current `owner/name`."""

    id: int | None = Field(default=None, description="database id; derived from the first name when unset")
    stars: int = 1000
    language: str = "Python"
    description: str = ""
    is_fork: bool = False
    is_archived: bool = False
    archived_at: Moment | None = Field(default=None, description="time of the newest commit when unset")
    is_private: bool = Field(default=False, description="seen only with a token of scope `repo`")
    is_gone: bool = Field(default=False, description="still in the search index, answered with NOT_FOUND elsewhere")
    is_unindexed: bool = Field(default=False, description="search counts and finds no pull request of it")
    is_nameless: bool = Field(default=False, description="the same, and only its id still resolves, not its name")
    size_kb: int | None = Field(default=None, description="measured when unset")
    former_names: tuple[str, ...] = Field(default=(), description="`owner/name`s that redirect here (301)")
    pull_requests: tuple[PullRequestFacts, ...] = ()
    issues: tuple[IssueFacts, ...] = ()
    transferred: dict[int, str] = Field(
        default_factory=dict, description="numbers of issues that now answer as `owner/name#N`"
    )


def versions_of(author: str | None, created_at: datetime, body: str, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Return all versions of a text that was first *body*, oldest first; none without *edits*."""
    if not edits:
        return ()
    return tuple(
        sorted((Edit(edited_at=created_at, body=body, author=author), *edits), key=lambda edit: edit.edited_at)
    )


class SideFile(Frozen):
    """The whole file: facts by current `owner/name`."""

    repositories: dict[str, RepositoryFacts] = Field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> SideFile:
        """Return the side file of *folder*, empty if there is none; raises ConfigurationError if it is malformed."""
        path = folder / SIDE_FILE
        if not path.exists():
            return cls()
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise ConfigurationError(f"{path} is malformed", why=str(error), remedy="Fix or delete it") from error
