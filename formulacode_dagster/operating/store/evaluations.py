"""Evaluations of models on the labelled commits: each is added, none is changed."""

from __future__ import annotations

from sqlalchemy import Connection, select

from formulacode_dagster.models.classification import ClassifierEvaluation

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
