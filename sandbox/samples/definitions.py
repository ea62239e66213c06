"""Definition of a sample repository, from its data files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.classification import Category
from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergeKind
from formulacode_dagster.sources.offline.side_file import Comment, IssueFacts


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment


Moment = Annotated[datetime, AfterValidator(_aware)]
"""An instant with the time zone in which its author wrote it down."""


class Person(Frozen):
    """A committer; the key in `people` is the login."""

    name: str
    email: str


class Edit(Frozen):
    """One change of one file. Exactly one of the kinds, `old` with `new` counting as one."""

    path: str
    old: str | None = Field(default=None, description="text that stands exactly once in the file")
    new: str | None = Field(default=None, description="what takes its place")
    content: str | None = Field(default=None, description="the whole file, written in UTF-8")
    latin1: str | None = Field(default=None, description="the whole file, written in ISO 8859-1")
    hexadecimal: str | None = Field(default=None, description="the whole file, byte by byte")
    table_lines: int | None = Field(default=None, description="the whole file: so many lines of made-up figures")
    move_to: str | None = None
    delete: bool = False

    @model_validator(mode="after")
    def _is_one_kind(self) -> Edit:
        kinds = [self.content, self.latin1, self.hexadecimal, self.table_lines, self.move_to]
        chosen = sum(kind is not None for kind in kinds) + self.delete + (self.old is not None)
        if chosen != 1 or (self.old is None) != (self.new is None):
            raise ValueError(f"the edit of {self.path} has to be of one kind")
        return self


class CommitDefinition(Frozen):
    """One commit of a branch."""

    message: str
    edits: tuple[Edit, ...]


class Expected(Frozen):
    """The expected end of a pull request in the funnel of its month."""

    last_stage: Stage
    state: ItemState
    reason: str = Field(default="", description="rejection reason, or kind of failure")
    category: Category | None = Field(default=None, description="the model's; None when it says no, or is not asked")
    benchmark: str = Field(default="", description="the benchmark that shows the change, as the suite names it")
    speedup: float | None = Field(default=None, description="lower bound of its ratio base / oracle on any machine")


class Push(Frozen):
    """Commits pushed to the default branch, without a pull request."""

    author: str
    pushed: Moment
    commits: tuple[CommitDefinition, ...] = Field(min_length=1)

    @property
    def landed(self) -> datetime:
        """When it reached the default branch."""
        return self.pushed


class SamplePullRequest(Frozen):
    """A merged pull request: its GitHub data, its commits, its purpose, and its expected end."""

    repository: str = Field(description="`owner/name`")
    number: int
    title: str
    why: str = Field(description="what it stands for, in one sentence")
    body: str = ""
    author: str
    merger: str = Field(default="", description="login of who merged it; the author when empty")
    labels: tuple[str, ...] = ()
    created: Moment
    merged: Moment
    merge: MergeKind
    closes: tuple[int, ...] = ()
    comments: tuple[Comment, ...] = ()
    commits: tuple[CommitDefinition, ...] = Field(min_length=1)
    expected: Expected | None = Field(default=None, description="None where its repository is not tracked")

    @property
    def item(self) -> str:
        """`owner/repo#number`."""
        return item_key(self.repository, self.number)

    @property
    def landed(self) -> datetime:
        """When it reached the default branch."""
        return self.merged

    @property
    def month(self) -> Month:
        """The month in which it was merged."""
        return Month.of(self.merged)


class SampleRepository(Frozen):
    """One repository: its metadata, its first commit, and everything that landed since."""

    name: str = Field(description="`owner/name`")
    id: int
    why: str = Field(description="what it stands for, in one sentence")
    description: str
    stars: int
    language: str = "Python"
    default_branch: str = "main"
    former_names: tuple[str, ...] = ()
    archived_at: Moment | None = None
    fork_of: str | None = Field(default=None, description="`owner/name` of a sample whose history this one shares")
    fork_after: int | None = Field(default=None, description="number of the last pull request they share")
    founded: Moment
    founder: str
    issues: tuple[IssueFacts, ...] = ()
    files: dict[str, str] = Field(default_factory=dict, description="content of the first commit; empty for a fork")
    pushes: tuple[Push, ...] = ()
    pull_requests: tuple[SamplePullRequest, ...] = ()

    @property
    def landings(self) -> tuple[Push | SamplePullRequest, ...]:
        """Pushes and pull requests in the order in which they reached the default branch."""
        return tuple(sorted((*self.pushes, *self.pull_requests), key=lambda change: change.landed.astimezone(UTC)))
