"""Writing rows: insert, or replace what has the same primary key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects.postgresql import insert


def upsert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Write *rows* in one pipelined batch, whatever their number; of rows with the same key the last one stays."""
    if not rows:
        return
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    changes = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changes), list(rows))
