"""Whole frames in and out of Postgres; frames with a key are replaced by COPY."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from psycopg import sql
from sqlalchemy import Connection, Table, and_, delete, select, text

from formulacode_dagster.operating.store.bulk import copying
from formulacode_dagster.operating.store.column_types import REPLACEMENT, storable_json

from .tables import ROW

if TYPE_CHECKING:
    import polars as pl

Key = Mapping[str, str]
"""Values of the columns that identify a frame within its table."""
ROWS_AT_ONCE = 50_000


def replace_frame(connection: Connection, table: Table, key: Key, frame: pl.DataFrame) -> None:
    """Make *frame* all that *table* has under *key*; the caller's transaction keeps the old rows until it commits."""
    import polars as pl

    # of two writers of one frame the second waits for the first
    name = "/".join((table.name, *key.values()))
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
    connection.execute(delete(table).where(_under(table, key)))
    for first in range(0, frame.height, ROWS_AT_ONCE):
        part = frame.slice(first, ROWS_AT_ONCE)
        order = pl.int_range(first, first + part.height, dtype=pl.Int64).alias(ROW)
        _copy(connection, table, part.select(*(pl.lit(value).alias(name) for name, value in key.items()), order, "*"))


def read_frame(connection: Connection, table: Table, key: Key, schema: pl.Schema) -> pl.DataFrame:
    """Read the frame that `replace_frame` wrote under *key*, in its order; empty if there is none."""
    import polars as pl

    columns = [table.columns[name] for name in schema]
    statement = select(*columns).where(_under(table, key)).order_by(table.columns[ROW])
    with connection.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE}) as rows:
        parts = [
            pl.DataFrame([tuple(row) for row in part], schema=schema, orient="row", infer_schema_length=None)
            for part in rows.partitions()
        ]
    return pl.concat([pl.DataFrame(schema=schema), *parts])


def _under(table: Table, key: Key) -> Any:
    return and_(*(table.columns[name] == value for name, value in key.items()))


def _copy(connection: Connection, table: Table, frame: pl.DataFrame) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, frame.columns))
    command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier(table.name), names)
    with copying(connection, command) as copy:
        copy.write(_plain(frame).write_csv(include_header=False))


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """*frame* with lists as JSON, and without the characters that Postgres refuses in text."""
    import polars as pl

    lists = [
        pl.Series(name, [json.dumps(storable_json(value)) for value in frame[name].to_list()], pl.String)
        for name, kind in frame.schema.items()
        if isinstance(kind, pl.List)
    ]
    return frame.with_columns(lists).with_columns(pl.col(pl.String).str.replace_all("\0", REPLACEMENT, literal=True))
