"""Requests to GitHub, append-only."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field
from sqlalchemy import Connection, func, insert, select

from formulacode_dagster.models.intake import ApiFigures, ApiUsage
from formulacode_dagster.models.items import Stage

from .tables import API_USAGE


class UsageTotal(ApiFigures):
    """Requests of all runs of one stage of one month to one of GitHub's resources."""

    stage: Stage
    resource: str
    runs: int = Field(description="runs that asked at all")


def add_usage(connection: Connection, rows: Sequence[ApiUsage]) -> None:
    """Append *rows*; the same line twice is an IntegrityError, since it would be counted twice."""
    if rows:
        connection.execute(insert(API_USAGE), [{**row.model_dump(), "stage": row.stage.value} for row in rows])


def usage_totals(connection: Connection, month: str, run_id: str | None = None) -> list[UsageTotal]:
    """The sums of *month*, or of one run of it: a line per stage, in the order of the graph, and resource."""
    columns = API_USAGE.c
    statement = (
        select(
            columns.stage,
            columns.resource,
            func.count(columns.run_id.distinct()).label("runs"),
            *(func.sum(columns[name]).label(name) for name in ApiFigures.model_fields),
        )
        .where(columns.month == month)
        .group_by(columns.stage, columns.resource)
    )
    if run_id is not None:
        statement = statement.where(columns.run_id == run_id)
    totals = [UsageTotal.model_validate(dict(row)) for row in connection.execute(statement).mappings()]
    order = list(Stage)
    return sorted(totals, key=lambda total: (order.index(total.stage), total.resource))
