"""`sandbox.json`: what a folder of bare repositories cannot tell about itself.

It lies in the folder that the sandbox serves, beside `owner/name.git`. Everything in it is optional: without it, pull
requests are derived from the history alone (`Merge pull request #N`, `… (#N)`, `refs/pull/N/head`).
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.pull_request import MergeKind

SIDE_FILE = "sandbox.json"


class Comment(Frozen):
    """A comment on an issue or pull request."""

    author: str
    body: str
    created_at: datetime
    edited_at: datetime | None = None


class Edit(Frozen):
    """A later version of an issue's body."""

    edited_at: datetime
    body: str
    author: str | None = None


class IssueFacts(Frozen):
    """An issue of the tracker. `body` is as it was opened; `edits` follow, oldest first."""

    number: int
    title: str
    body: str = ""
    author: str = "ghost"
    labels: tuple[str, ...] = ()
    created_at: datetime
    closed_at: datetime | None = Field(default=None, description="derived from the pull request that closes it")
    edits: tuple[Edit, ...] = ()
    comments: tuple[Comment, ...] = ()


class PullRequestFacts(Frozen):
    """What overrides or completes the pull request derived from the history.

    `merge_commit_sha` makes a pull request of a commit whose message names none (a rebase merge has no mark).
    """

    number: int
    title: str | None = None
    body: str | None = None
    author: str | None = None
    labels: tuple[str, ...] = ()
    created_at: datetime | None = None
    merged_at: datetime | None = None
    merge_kind: MergeKind | None = None
    merge_commit_sha: str | None = None
    head_sha: str | None = None
    commit_count: int | None = None
    base_ref: str | None = Field(default=None, description="branch it was merged into; the default branch when unset")
    closes: tuple[int, ...] = Field(default=(), description="issue numbers in the same repository")
    comments: tuple[Comment, ...] = ()


class RepositoryFacts(Frozen):
    """What overrides or completes a repository derived from its folder. The key is the current `owner/name`."""

    id: int | None = Field(default=None, description="database id; derived from the first name when unset")
    stars: int = 1000
    language: str = "Python"
    description: str = ""
    is_fork: bool = False
    is_archived: bool = False
    is_private: bool = Field(default=False, description="seen only with a token of scope `repo`")
    is_gone: bool = Field(default=False, description="still in the search index, answered with NOT_FOUND elsewhere")
    former_names: tuple[str, ...] = Field(default=(), description="`owner/name`s that redirect here (301)")
    pull_requests: tuple[PullRequestFacts, ...] = ()
    issues: tuple[IssueFacts, ...] = ()


class SideFile(Frozen):
    """The whole file: facts by current `owner/name`."""

    repositories: dict[str, RepositoryFacts] = Field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> SideFile:
        """The side file of *folder*, empty when there is none; raises ConfigurationError when it is malformed."""
        path = folder / SIDE_FILE
        if not path.exists():
            return cls()
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise ConfigurationError(f"{path} is malformed", why=str(error), remedy="Fix or delete it") from error
