"""Counts of the classifier's verdicts: a control chart needs two numbers of a month, not its rows."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Boolean, ColumnElement, Connection, Text, any_, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from .artifacts import CLASSIFICATIONS


def positives_by_month(connection: Connection, months: Collection[str]) -> dict[str, tuple[int, int]]:
    """(performance pull requests, all that were judged) of each of *months* that has any."""
    columns = CLASSIFICATIONS.table.c
    statement = (
        select(columns.month, func.count().filter(cast(_field("is_performance"), Boolean)), func.count())
        .where(columns.month == any_(cast(list(months), ARRAY(Text))))
        .group_by(columns.month)
        .order_by(columns.month)
    )
    return {month: (positives, judged) for month, positives, judged in connection.execute(statement)}


def judges_of(connection: Connection, month: str) -> list[tuple[str, str]]:
    """Return the (model, prompt version) pairs of the verdicts of *month*."""
    model, version = _field("model"), _field("prompt_version")
    statement = select(model, version).where(CLASSIFICATIONS.table.c.month == month).distinct().order_by(model, version)
    return [(model, version) for model, version in connection.execute(statement)]


def _field(name: str) -> ColumnElement[str]:
    return func.jsonb_extract_path_text(CLASSIFICATIONS.table.c.document, name)
