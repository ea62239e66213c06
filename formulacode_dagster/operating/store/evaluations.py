"""Verdicts of the classifier by month, and evaluations of models on the labelled commits, of which none is changed."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Boolean, ColumnElement, Connection, Text, any_, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from formulacode_dagster.models.classification import ClassifierEvaluation

from .artifacts import CLASSIFICATIONS
from .bulk import insert_new
from .tables import CLASSIFIER_EVALUATIONS


def add_evaluation(connection: Connection, evaluation: ClassifierEvaluation) -> None:
    """Store *evaluation* in addition to earlier ones."""
    insert_new(connection, CLASSIFIER_EVALUATIONS, [evaluation.model_dump()])


def last_evaluation(connection: Connection, model: str, prompt_version: str) -> ClassifierEvaluation | None:
    """Return the newest evaluation of *model* with *prompt_version*, None if there is none."""
    columns = CLASSIFIER_EVALUATIONS.c
    statement = (
        select(*(columns[name] for name in ClassifierEvaluation.model_fields))
        .where(columns.model == model, columns.prompt_version == prompt_version)
        .order_by(columns.evaluated_at.desc(), columns.id.desc())
        .limit(1)
    )
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else ClassifierEvaluation.model_validate(dict(row))


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
