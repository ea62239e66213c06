"""Relations for queries: one per artifact, every column documented, derived from the models of the rows.

A row stored as a document gets a view with the artifact's name and a column for each field; the columns of other tables
get comments. A new field or description needs no migration: `migrate` recreates the views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Dialect, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.columns import TableColumn, columns_of, postgres_type
from formulacode_dagster.models.pull_request import PullRequest

from .artifacts import CHANGES, MERGED_PULL_REQUESTS, QUERIED, Artifact
from .column_types import type_name
from .migrations import Views
from .series.comments import comments
from .series.views import BENCHMARK_RESULTS, SERIES_RELATIONS

_DIALECT: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Relation:
    """A table or view for queries: the artifacts whose rows it shows, joined if there are several."""

    name: str
    artifacts: tuple[Artifact[Any], ...]
    meaning: str

    @property
    def is_view(self) -> bool:
        """True if it is a view; otherwise it is the artifact's table."""
        return self.name != self.artifacts[0].table.name

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """Columns with names, types as in `information_schema`, and meanings."""
        known = {column.name: column for artifact in reversed(self.artifacts) for column in artifact.table.columns}

        def type_of(name: str, plain: object) -> str:
            if name not in known:
                return postgres_type(plain)
            return type_name(known[name])

        return columns_of(*(artifact.model for artifact in self.artifacts), type_of=type_of)

    def sql(self) -> str:
        """Return the statements that create it, if it is a view, with the table of its documents, and describe it."""
        kind = "VIEW" if self.is_view else "TABLE"
        made = [
            str(CreateTable(artifact.table, if_not_exists=True).compile(dialect=_DIALECT)).strip() + ";"
            for artifact in self.artifacts
            if artifact.is_document
        ]
        lines = [*made, f"CREATE VIEW {self.name} AS {self._select()};"] if self.is_view else []
        return "\n".join([*lines, comments(kind, self.name, self.meaning, self.columns)])

    def _select(self) -> str:
        first, *others = (artifact.table for artifact in self.artifacts)
        shown = ", ".join(self._expression(column, first) for column in self.columns)
        joined = "".join(f" JOIN {other.name} USING ({', '.join(_keys(other))})" for other in others)
        return f"SELECT {shown} FROM {first.name}{joined}"  # noqa: S608 - names of our own models and tables

    def _expression(self, column: TableColumn, table: Table) -> str:
        name = f'"{column.name}"'
        if "document" not in table.columns or column.name in table.columns:
            return name
        if column.type == "jsonb":
            return f"document->'{column.name}' AS {name}"
        return f"(document->>'{column.name}')::{column.type} AS {name}"


def _keys(table: Table) -> list[str]:
    return [column.name for column in table.primary_key]


def _relation(name: str, *artifacts: Artifact[Any], row: type[Frozen] | None = None) -> Relation:
    documented = row or artifacts[0].model
    return Relation(name, artifacts, meaning=(documented.__doc__ or "").partition("\n")[0])


RELATIONS: dict[str, Relation] = {
    relation.name: relation
    for relation in (
        *(_relation(artifact.relation, artifact) for artifact in QUERIED),
        _relation("pull_requests", MERGED_PULL_REQUESTS, CHANGES, row=PullRequest),
    )
}

VIEWS = Views(
    names=(*(relation.name for relation in RELATIONS.values() if relation.is_view), BENCHMARK_RESULTS.name),
    sql="\n".join(
        [*(relation.sql() for relation in RELATIONS.values()), *(one.sql() for one in SERIES_RELATIONS.values())]
    ),
)
"""Views that `migrate` creates once the tables exist."""
