"""The input files, column by column: one set of models for reading, exporting and documenting them.

Cells are read strictly: a value of another type is an error, never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, RepositoryState

FORMATS = (".parquet", ".csv", ".jsonl")
LONGEST = 4 * 2**20
"""Characters of a cell; GitHub's own longest text has 65,536."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL byte")
    return text


def _full_name(text: str) -> str:
    try:
        name = ItemName.parse(text)
    except ConfigurationError:
        raise ValueError("not owner/name") from None
    if name.number is not None or str(name) != text:
        raise ValueError("not owner/name")
    return text


def _whole(raw: Any) -> Any:
    if isinstance(raw, bool) or (isinstance(raw, str) and not re.fullmatch(r"-?[0-9]{1,19}", raw)):
        raise ValueError("not a whole number")
    return raw


def _utc(raw: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(raw) if isinstance(raw, str) else raw
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise ValueError("not a time such as 2026-02-03T04:05:06Z")
    if moment.tzinfo is None:
        raise ValueError("has no time zone; write 2026-02-03T04:05:06Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is out of range in UTC") from None


def _month_key(text: str) -> str:
    try:
        return Month.parse(text).key
    except ConfigurationError:
        raise ValueError("not a month such as 2026-02") from None


def _list(raw: Any) -> Any:
    try:
        return json.loads(raw) if isinstance(raw, str) else raw
    except (ValueError, RecursionError):
        raise ValueError('not a JSON list such as ["a", "b"]') from None


Text = Annotated[str, Field(strict=True, title="text", max_length=LONGEST), AfterValidator(_without_nul)]
FullName = Annotated[str, Field(strict=True, title="owner/name"), AfterValidator(_full_name)]
Count = Annotated[int, Field(title="whole number, 0 or more", ge=0, lt=2**31), BeforeValidator(_whole)]
Number = Annotated[int, Field(title="whole number, 1 or more", ge=1, lt=2**31), BeforeValidator(_whole)]
DatabaseId = Annotated[int, Field(title="whole number, 1 or more", ge=1, lt=2**63), BeforeValidator(_whole)]
_TIME = Field(title="time, ISO 8601 with zone")
Time = Annotated[datetime, _TIME, BeforeValidator(_utc)]
OptionalTime = Annotated[datetime | None, _TIME, BeforeValidator(_utc)]
MonthKey = Annotated[str, Field(strict=True, title="month, YYYY-MM"), AfterValidator(_month_key)]
Sha = Annotated[str, Field(strict=True, title="40 hexadecimal digits", pattern=r"^[0-9a-f]{40}$")]
Texts = Annotated[tuple[Text, ...], Field(title="list of texts"), BeforeValidator(_list)]


class OfflineRow(Frozen):
    """One row. A cell that is empty, null or absent is the default, unless the column is required."""

    empty_texts: ClassVar[frozenset[str]] = frozenset()
    """Columns in which an empty text is a value."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty_cells(cls, cells: Any) -> Any:
        if not isinstance(cells, Mapping):
            return cells
        return {
            name: cell for name, cell in cells.items() if cell is not None and (cell != "" or name in cls.empty_texts)
        }


class RepositoryRow(OfflineRow):
    """A repository."""

    empty_texts = frozenset({"language"})
    full_name: FullName = Field(description="the current name")
    month: MonthKey = Field(default="", description="the only month the row is about; empty: every month")
    id: DatabaseId = Field(
        default=0, description="GitHub's database id; empty: the database's, else a negative one made of the name"
    )
    node_id: Text = Field(default="", description="GitHub's id in GraphQL")
    aliases: Texts = Field(default=(), description="former names")
    state: RepositoryState = Field(
        title="state", default=RepositoryState.ACTIVE, description=f"{', '.join(RepositoryState)}; empty: active"
    )
    archived_at: OptionalTime = Field(default=None, description="since when it is read-only")
    default_branch: Text = Field(default="", description="name of the branch; empty: not known")
    stars: Count = Field(default=UNKNOWN_STARS, description="stars; empty: not known, and then not judged")
    language: Text = Field(default=UNKNOWN_LANGUAGE, description="main language; empty: not known, and then not judged")
    description: Text = Field(default="", description="one line about it")
    size_kb: Count = Field(default=0, description="kilobytes of the git repository; empty: not known")
    config_path: Text = Field(default="", description="path of the asv configuration; empty: not known")


class IssueCell(OfflineRow):
    """One issue of a cell, as `LinkedIssue` has it."""

    empty_texts = frozenset({"title"})
    repository: FullName
    number: Number
    title: Text
    body: Text = ""
    author: Text = ""
    created_at: Time


Issues = Annotated[tuple[IssueCell, ...], Field(title="list of issues"), BeforeValidator(_list)]


class OfRepository(OfflineRow, extra="ignore"):
    """The one column of a pull request that names a repository."""

    repository: FullName


class MergedAt(OfflineRow, extra="ignore"):
    """The one column of a pull request that decides its month."""

    merged_at: Time


class OfflinePullRequest(OfflineRow):
    """A merged pull request."""

    empty_texts = frozenset({"title"})
    repository: FullName = Field(description="name or alias of a repository of the other file")
    number: Number = Field(description="number of the pull request")
    title: Text = Field(description="title")
    merged_at: Time = Field(description="when it was merged: decides its month")
    merge_commit_sha: Sha = Field(
        default="", description="the commit that landed; empty: read from the mirror's history"
    )
    head_sha: Sha = Field(default="", description="last commit of the branch; empty: read from the mirror if possible")
    base_ref: Text = Field(default="", description="branch it was merged into; empty: the default branch")
    body: Text = Field(default="", description="what its author wrote")
    author: Text = Field(default="", description="login of the author")
    labels: Texts = Field(default=(), description="names of the labels")
    created_at: OptionalTime = Field(default=None, description="when it was opened; empty: when it was merged")
    commit_count: Count = Field(default=0, description="commits of the branch; empty: not known")
    changed_files: Count = Field(default=0, description="files it changes, a rename counted once; empty: not known")
    linked_issues: Issues = Field(
        default=(), description="issues it closes: objects of repository, number, title, body, author, created_at"
    )


class CountRow(OfflineRow):
    """Number of pull requests that a repository merged in a month."""

    repository: FullName = Field(description="name of a repository")
    month: MonthKey = Field(description="the month")
    reported: Count = Field(description="its merged pull requests; another number of rows fails it")


@dataclass(frozen=True)
class FileSchema:
    """One file: its name without suffix, the meaning of a row, its columns."""

    name: str
    row: str
    model: type[OfflineRow]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.model.model_fields)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that must be there."""
        return tuple(name for name, field in self.model.model_fields.items() if field.is_required())


REPOSITORIES = FileSchema("repositories", "a repository", RepositoryRow)
PULL_REQUESTS = FileSchema("pull_requests", "a merged pull request", OfflinePullRequest)
COUNTS = FileSchema(
    "counts", "how many pull requests a repository merged in a month; the file may be left out", CountRow
)
SCHEMAS = (REPOSITORIES, PULL_REQUESTS, COUNTS)


def describe() -> str:
    """The schema for people."""
    lines = [
        "A folder with repositories and pull_requests (and counts, if you have it), each as .parquet, .csv or .jsonl;",
        "or the files themselves, comma separated. Text is UTF-8. Times carry a zone: 2026-02-03T04:05:06Z.",
        'Lists are JSON in a cell of CSV: ["performance"]. Rows of other months are not used.',
    ]
    width = max(len(name) for schema in SCHEMAS for name in schema.columns)
    for schema in SCHEMAS:
        lines += ["", f"{schema.name}: a row is {schema.row}"]
        for name, field in schema.model.model_fields.items():
            must = "required" if field.is_required() else "optional"
            lines.append(f"  {name:<{width}}  {must}  {field.title}: {field.description}")
    return "\n".join(lines)
