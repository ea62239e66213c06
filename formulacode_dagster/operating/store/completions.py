"""The cache of the model's answers, in Postgres."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import func, select

from formulacode_dagster.models.completion import Completion

from .bulk import insert_missing
from .database import Database
from .tables import COMPLETIONS


class StoredCompletions:
    """Implements `CompletionCache`; each call is a short transaction, so that a crash loses no answer."""

    def __init__(self, database: Database, *, reask: bool = False) -> None:
        """With *reask*, nothing is found, and each new answer is stored next to the old ones."""
        self._database = database
        self._reask = reask

    def get(self, key: str) -> Completion | None:
        """The newest answer, or None."""
        if self._reask:
            return None
        columns = COMPLETIONS.c
        statement = (
            select(*(columns[name] for name in Completion.model_fields))
            .where(columns.key == key)
            .order_by(columns.attempt.desc())
            .limit(1)
        )
        with self._database.transaction() as connection:
            row = connection.execute(statement).mappings().one_or_none()
        return None if row is None else Completion.model_validate(dict(row))

    def put(self, completion: Completion) -> None:
        """Store an answer; the first one for a key stays unless it is asked again on request."""
        row = {**completion.model_dump(), "attempt": 1, "created_at": datetime.now(tz=UTC)}
        with self._database.transaction() as connection:
            if self._reask:
                # of two concurrent requests, the second uses the first one's answer
                connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(completion.key, 0))))
                kept = select(func.count()).where(COMPLETIONS.c.key == completion.key)
                row["attempt"] = connection.execute(kept).scalar_one() + 1
            insert_missing(connection, COMPLETIONS, [row])
