"""The columns of the files that are taken in: one table for reading, exporting and explaining them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from formulacode_dagster.models.repository import RepositoryState

FORMATS = (".parquet", ".csv", ".jsonl")


class Kind(StrEnum):
    """What a cell holds."""

    TEXT = "text"
    NAME = "owner/name"
    COUNT = "whole number, 0 or more"
    NUMBER = "whole number, 1 or more"
    TIME = "time, ISO 8601 with zone"
    MONTH = "month, YYYY-MM"
    SHA = "40 hexadecimal digits"
    STATE = "state"
    TEXTS = "list of texts"
    ISSUES = "list of issues"


@dataclass(frozen=True)
class Column:
    """One column. A cell that is empty, null or absent is the default, unless the column is required."""

    name: str
    kind: Kind
    meaning: str
    required: bool = False


@dataclass(frozen=True)
class FileSchema:
    """One file: its name without suffix, what a row of it is, its columns."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def by_name(self) -> dict[str, Column]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that must be there."""
        return tuple(column.name for column in self.columns if column.required)


REPOSITORIES = FileSchema(
    "repositories",
    "a repository",
    (
        Column("full_name", Kind.NAME, "the current name", required=True),
        Column("month", Kind.MONTH, "the only month the row is about; empty: every month"),
        Column("id", Kind.NUMBER, "GitHub's database id; empty: the database's, else a negative one made of the name"),
        Column("node_id", Kind.TEXT, "GitHub's id in GraphQL"),
        Column("aliases", Kind.TEXTS, "former names"),
        Column("state", Kind.STATE, f"{', '.join(RepositoryState)}; empty: active"),
        Column("archived_at", Kind.TIME, "since when it is read-only"),
        Column("default_branch", Kind.TEXT, "name of the branch; empty: not known"),
        Column("stars", Kind.COUNT, "stars; empty: not known, and then not judged"),
        Column("language", Kind.TEXT, "main language; empty: not known, and then not judged"),
        Column("description", Kind.TEXT, "one line about it"),
        Column("size_kb", Kind.COUNT, "kilobytes of the git repository; empty: not known"),
        Column("config_path", Kind.TEXT, "path of the asv configuration; empty: not known"),
    ),
)

PULL_REQUESTS = FileSchema(
    "pull_requests",
    "a merged pull request",
    (
        Column("repository", Kind.NAME, "name or alias of a repository of the other file", required=True),
        Column("number", Kind.NUMBER, "number of the pull request", required=True),
        Column("title", Kind.TEXT, "title", required=True),
        Column("merged_at", Kind.TIME, "when it was merged: decides its month", required=True),
        Column("merge_commit_sha", Kind.SHA, "the commit that landed; empty: read from the mirror's history"),
        Column("head_sha", Kind.SHA, "last commit of the branch; empty: read from the mirror where it tells"),
        Column("base_ref", Kind.TEXT, "branch it was merged into; empty: the default branch"),
        Column("body", Kind.TEXT, "what its author wrote"),
        Column("author", Kind.TEXT, "login of the author"),
        Column("labels", Kind.TEXTS, "names of the labels"),
        Column("created_at", Kind.TIME, "when it was opened; empty: when it was merged"),
        Column("commit_count", Kind.COUNT, "commits of the branch; empty: not known"),
        Column("changed_files", Kind.COUNT, "files it changes, a rename counted once; empty: not known"),
        Column(
            "linked_issues",
            Kind.ISSUES,
            "issues it closes: objects of repository, number, title, body, author, created_at",
        ),
    ),
)

COUNTS = FileSchema(
    "counts",
    "how many pull requests a repository merged in a month; the file may be left out",
    (
        Column("repository", Kind.NAME, "name of a repository", required=True),
        Column("month", Kind.MONTH, "the month", required=True),
        Column("reported", Kind.COUNT, "its merged pull requests; another number of rows fails it", required=True),
    ),
)

SCHEMAS = (REPOSITORIES, PULL_REQUESTS, COUNTS)


def describe() -> str:
    """The schema for people."""
    lines = [
        "A folder with repositories and pull_requests (and counts, if you have it), each as .parquet, .csv or .jsonl;",
        "or the files themselves, comma separated. Text is UTF-8. Times carry a zone: 2026-02-03T04:05:06Z.",
        'Lists are JSON in a cell of CSV: ["performance"]. Rows of other months are not used.',
    ]
    width = max(len(column.name) for schema in SCHEMAS for column in schema.columns)
    for schema in SCHEMAS:
        lines += ["", f"{schema.name}: a row is {schema.row}"]
        for column in schema.columns:
            must = "required" if column.required else "optional"
            lines.append(f"  {column.name:<{width}}  {must}  {column.kind}: {column.meaning}")
    return "\n".join(lines)
