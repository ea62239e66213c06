"""Releases to a folder of the home: its path is the destination's name, and another one after a restore elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, exists, func, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from formulacode_dagster.operating.store.artifacts import RELEASES


def rename_destinations(connection: Connection, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Let releases to a path in *before* be at that of the same name in *after*, unless they are there already."""
    table, there = RELEASES.table, RELEASES.table.alias()
    for name, old in before.items():
        new = after.get(name, old)
        if new == old:
            continue
        is_there = exists(
            select(there).where(there.c.month == table.c.month, there.c.tag == table.c.tag, there.c.destination == new)
        )
        changes = func.jsonb_build_object("destination", literal(new), type_=JSONB)
        connection.execute(
            update(table)
            .where(table.c.destination == old, ~is_there)
            .values(destination=new, document=table.c.document.op("||")(changes))
        )
