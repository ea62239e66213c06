"""Writing rows: a few by a plain statement; many through COPY into a stage table and one merge.

Rows known to be new need no stage table: they are copied directly, at half the cost for the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from psycopg import sql
from sqlalchemy import Column, Connection, MetaData, Table, select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.exc import DBAPIError

COPY_FROM_ROWS = 200
"""Below, making and dropping the stage table costs more than COPY saves (`make bench-store` measures both)."""

Row = dict[str, Any]


def upsert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert *rows*, or replace those with their primary key; the last of several rows with one key wins."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    statement = insert(table)
    changes = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    _write(connection, table, rows, statement.on_conflict_do_update(index_elements=keys, set_=changes))


def insert_missing(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert those of *rows* whose primary key is not there yet."""
    if rows:
        _write(connection, table, rows, insert(table).on_conflict_do_nothing())


def insert_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert new *rows*; IntegrityError if one exists."""
    if len(rows) >= COPY_FROM_ROWS:
        _copy(connection, table, [table.columns[name] for name in rows[0]], rows)
    elif rows:
        connection.execute(insert(table), list(rows))


def _write(connection: Connection, table: Table, rows: Sequence[Row], statement: Insert) -> None:
    if len(rows) < COPY_FROM_ROWS:
        connection.execute(statement, list(rows))
        return
    keys = [column.name for column in table.primary_key]
    # one merge must not meet a key twice
    distinct = {tuple(row[key] for key in keys): row for row in rows}
    columns = [table.columns[name] for name in rows[0]]
    stage = Table(
        f"stage_{table.name}",
        MetaData(),
        *(Column(column.name, column.type) for column in columns),
        prefixes=["TEMPORARY"],
        postgresql_on_commit="DROP",
    )
    stage.create(connection, checkfirst=False)
    # in key order, so that two writers of the same rows wait for each other and never deadlock; sorted here, since the
    # server would sort whole rows on disk
    _copy(connection, stage, columns, (distinct[key] for key in sorted(distinct)))
    connection.execute(statement.from_select([column.name for column in columns], select(stage)))
    stage.drop(connection, checkfirst=False)


def _copy(connection: Connection, table: Table, columns: Sequence[Column[Any]], rows: Iterable[Row]) -> None:
    dialect = connection.dialect
    processors = [(column.name, column.type.dialect_impl(dialect).bind_processor(dialect)) for column in columns]
    names = sql.SQL(", ").join(sql.Identifier(column.name) for column in columns)
    with copying(connection, sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), names)) as copy:
        for row in rows:
            copy.write_row([process(row[name]) if process else row[name] for name, process in processors])


@contextmanager
def copying(connection: Connection, command: sql.Composed) -> Iterator[psycopg.Copy]:
    """Yield a writer to the COPY *command*; errors are those of other statements."""
    raw = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    try:
        with raw.cursor() as cursor, cursor.copy(command) as copy:
            yield copy
    except psycopg.Error as error:
        gone = raw.closed or raw.broken
        if gone:
            connection.invalidate(error)
        # COPY goes past SQLAlchemy
        raise DBAPIError.instance(
            command.as_string(raw), None, error, psycopg.Error, connection_invalidated=gone, dialect=connection.dialect
        ) from error
