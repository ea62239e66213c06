"""Relations of dashboards for queries: their tables with every column documented, and a view of all values."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, Table

from formulacode_dagster.models.columns import TableColumn

from ..column_types import type_name
from .comments import comments
from .tables import (
    BREAKPOINT_COMMITS,
    BREAKPOINTS,
    DASHBOARDS,
    POINTS,
    REPLICATION,
    REVISIONS,
    SERIES,
    SITE_TABLES,
)


@dataclass(frozen=True)
class SeriesRelation:
    """A table or view of dashboards as people see it."""

    name: str
    meaning: str
    columns: tuple[TableColumn, ...]
    definition: str = ""
    """Query of the view; empty for a table."""

    def sql(self) -> str:
        """Return the statements that create it, if it is a view, and document it."""
        made = f"CREATE VIEW {self.name} AS {self.definition};\n" if self.definition else ""
        return made + comments("VIEW" if self.definition else "TABLE", self.name, self.meaning, self.columns)


def _shown(column: Column[object]) -> TableColumn:
    return TableColumn(column.name, type_name(column), column.comment or "")


def _relation(table: Table) -> SeriesRelation:
    return SeriesRelation(table.name, table.comment or "", tuple(map(_shown, table.columns)))


_SERIES_SHOWN = ("benchmark", "parameters", "machine", "branch", "environment", "type", "unit")
BENCHMARK_RESULTS = SeriesRelation(
    "benchmark_results",
    "A value of a benchmark with its parameters in an environment at a commit, published or of raw results.",
    tuple(
        map(
            _shown,
            (
                *(POINTS.columns[name] for name in ("dashboard", "source")),
                *(SERIES.columns[name] for name in _SERIES_SHOWN),
                *(REVISIONS.columns[name] for name in ("revision", "hash", "date")),
                *(POINTS.columns[name] for name in ("value", "low", "high")),
            ),
        )
    ),
    f"SELECT dashboard, source, {', '.join(_SERIES_SHOWN)}, revision, hash, date, value, low, high"  # noqa: S608 - our own names
    f" FROM {POINTS.name} JOIN {SERIES.name} USING (dashboard, source, series)"
    f" LEFT JOIN {REVISIONS.name} USING (dashboard, source, revision)",
)
SERIES_RELATIONS = {
    relation.name: relation
    for relation in (
        *map(_relation, (DASHBOARDS, *SITE_TABLES.values(), BREAKPOINTS, BREAKPOINT_COMMITS, REPLICATION)),
        BENCHMARK_RESULTS,
    )
}
