"""Results of people's own functions, by entity, name of the function and arguments: computed once, then read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Row, delete, select

from formulacode_dagster.models.errors import FormulaCodeError

from .bulk import insert_missing
from .tables import HOOK_RESULTS


def get(connection: Connection, entity: str, hook: str, arguments: str) -> Row[tuple[Any]] | None:
    """Return the row with the stored `result` of *hook* for *entity* with *arguments*, which may be None; else None."""
    columns = HOOK_RESULTS.c
    statement = select(columns.result).where(
        columns.entity == entity, columns.hook == hook, columns.arguments == arguments
    )
    return connection.execute(statement).one_or_none()


def put(connection: Connection, entity: str, hook: str, arguments: str, result: JsonValue) -> Row[tuple[Any]]:
    """Store *result* unless there is one; returns the row that stays, so that concurrent callers get the same answer.

    Raises FormulaCodeError for a result that would not come back from JSON as it was given.
    """
    _require_json(hook, entity, result)
    row = {
        "entity": entity,
        "hook": hook,
        "arguments": arguments,
        "result": result,
        "created_at": datetime.now(tz=UTC),
    }
    insert_missing(connection, HOOK_RESULTS, [row])
    # a separate statement also sees the row that another transaction has just committed
    kept = get(connection, entity, hook, arguments)
    if kept is None:
        raise FormulaCodeError(
            f"the result of hook {hook!r} for {entity} was removed meanwhile", remedy="Call it again"
        )
    return kept


def forget(connection: Connection, hook: str, entity: str | None = None) -> int:
    """Drop the results of *hook*, or those for one entity, because its code changed; returns how many."""
    statement = delete(HOOK_RESULTS).where(HOOK_RESULTS.c.hook == hook)
    if entity is not None:
        statement = statement.where(HOOK_RESULTS.c.entity == entity)
    return connection.execute(statement).rowcount


def _require_json(hook: str, entity: str, result: JsonValue) -> None:
    try:
        same = json.loads(json.dumps(result, allow_nan=False)) == result
        why = "" if same else "tuples, and keys that are not text, come back as something else"
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    if why:
        raise FormulaCodeError(
            f"what hook {hook!r} returned for {entity} cannot be stored as JSON",
            why=why,
            remedy="Return text, finite numbers, booleans, None, and lists and dictionaries of them",
        )
