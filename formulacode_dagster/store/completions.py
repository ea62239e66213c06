"""The cache of the model's answers, in Postgres."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import select

from formulacode_dagster.models.completion import Completion

from .bulk import insert_missing
from .database import Database
from .tables import COMPLETIONS


class StoredCompletions:
    """Implements `CompletionCache`; each call is a short transaction of its own, so that a crash loses no answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> Completion | None:
        """The stored answer, or None."""
        statement = select(*(COMPLETIONS.c[name] for name in Completion.model_fields)).where(COMPLETIONS.c.key == key)
        with self._database.transaction() as connection:
            row = connection.execute(statement).mappings().one_or_none()
        return None if row is None else Completion.model_validate(dict(row))

    def put(self, completion: Completion) -> None:
        """Keep an answer; the first one for a key stays."""
        row = {**completion.model_dump(), "created_at": datetime.now(tz=UTC)}
        with self._database.transaction() as connection:
            insert_missing(connection, COMPLETIONS, [row])
