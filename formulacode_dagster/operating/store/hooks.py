"""Results of people's own functions, by entity, name of the function and arguments: computed once, then read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import JsonValue
from sqlalchemy import Connection, delete, select

from formulacode_dagster.models.errors import FormulaCodeError

from .bulk import insert_missing
from .tables import HOOK_RESULTS


@dataclass(frozen=True)
class HookResult:
    """One stored result. A result of None is a result: only a missing one is None in its place."""

    entity: str
    hook: str
    arguments: str
    result: JsonValue
    created_at: datetime


def get(connection: Connection, entity: str, hook: str, arguments: str) -> HookResult | None:
    """Return the stored result of *hook* for *entity* with *arguments*, or None."""
    columns = HOOK_RESULTS.c
    statement = select(HOOK_RESULTS).where(
        columns.entity == entity, columns.hook == hook, columns.arguments == arguments
    )
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else HookResult(**row)


def put(connection: Connection, entity: str, hook: str, arguments: str, result: JsonValue) -> HookResult:
    """Store *result* unless there is one; returns the one that stays, so that concurrent callers get the same answer.

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
