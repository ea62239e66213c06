"""Contexts: how commits are built beyond what they declare, by repository and commit."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, func, select

from formulacode_dagster.models.context import StoredContext

from .bulk import upsert
from .tables import CONTEXTS

_COLUMNS = CONTEXTS.c
_KEYS = ("context_id", "repository_id", "repository", "base_sha")


def save_context(connection: Connection, context: StoredContext) -> None:
    """Keep *context*, in the place of one of the same content."""
    document = context.model_dump(mode="json")
    row = {name: document[name] for name in _KEYS}
    upsert(connection, CONTEXTS, [{**row, "created_at": context.created_at, "document": document}])


def contexts_of(connection: Connection, repository_id: int) -> list[StoredContext]:
    """All contexts of a repository, the newest first."""
    return _read(connection, _COLUMNS.repository_id == repository_id)


def contexts_named(connection: Connection, repository: str = "", prefix: str = "") -> list[StoredContext]:
    """Contexts of *repository*, or of all, whose id begins with *prefix*; the newest first."""
    is_asked = [func.lower(_COLUMNS.repository) == repository.lower()] if repository else []
    return _read(connection, *is_asked, _COLUMNS.context_id.startswith(prefix, autoescape=True))


def _read(connection: Connection, *conditions: ColumnElement[bool]) -> list[StoredContext]:
    statement = select(_COLUMNS.document).where(*conditions)
    contexts = [StoredContext.model_validate(document) for document in connection.execute(statement).scalars()]
    return sorted(contexts, key=lambda context: context.newest, reverse=True)
