"""Rows of whole tables, out of one snapshot of a database and into an empty one, by COPY."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Engine, MetaData, Table, func, select

from formulacode_dagster.models.errors import ConfigurationError

from .manifest import TableBackup, TableOwner, sha256_of
from .streams import CHUNK, ENCRYPTED, open_compressed, write_compressed


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Open a connection with one consistent snapshot of all tables."""
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with connection.begin():
            # tables may take any time, and so may the work between two of them
            for timeout in ("statement_timeout", "idle_in_transaction_session_timeout"):
                connection.exec_driver_sql(f"SET LOCAL {timeout} = 0")
            yield connection


def tables_of(connection: Connection) -> list[Table]:
    """Return the tables of the database, referenced tables first."""
    found = MetaData()
    found.reflect(connection)
    return list(found.sorted_tables)


def save_table(connection: Connection, table: Table, folder: Path, origin: TableOwner, recipient: str) -> TableBackup:
    """Write the rows of *table* to a file below *folder*, encrypted for *recipient* unless that is empty."""
    path = folder / origin / f"{table.name}.copy.zst{ENCRYPTED if recipient else ''}"
    columns = tuple(column.name for column in table.columns if column.computed is None)
    rows = int(connection.execute(select(func.count()).select_from(table)).scalar_one())
    command = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(table.name), _names(columns))

    def chunks() -> Iterator[bytes]:
        with _raw(connection).cursor() as cursor, cursor.copy(command) as copy:
            for chunk in copy:
                yield bytes(chunk)

    write_compressed(path, chunks(), recipient)
    return TableBackup(
        origin=origin,
        table=table.name,
        columns=columns,
        rows=rows,
        path=str(path.relative_to(folder)),
        bytes=path.stat().st_size,
        sha256=sha256_of(path),
    )


def load_tables(
    engine: Engine, backups: Sequence[TableBackup], folder: Path, identity: str, progress: Callable[[str], None]
) -> None:
    """Put the rows of *backups* into their tables, which are emptied first; all of them, or none.

    Raises ConfigurationError if the number of rows differs from the number saved.
    """
    with engine.begin() as connection, _raw(connection).cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        for backup in reversed(backups):
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(backup.table)))
        for backup in backups:
            progress(f"{backup.origin} {backup.table}")
            rows = _load(cursor, backup, folder, identity)
            if rows != backup.rows:
                raise ConfigurationError(
                    f"{backup.path} gave {rows} rows of {backup.rows}", remedy="Take another backup"
                )


def _load(cursor: psycopg.Cursor[Any], backup: TableBackup, folder: Path, identity: str) -> int:
    name = sql.Identifier(backup.table)
    command = sql.SQL("COPY {} ({}) FROM STDIN").format(name, _names(backup.columns))
    with open_compressed(folder / backup.path, identity) as rows, cursor.copy(command) as copy:
        while chunk := rows.read(CHUNK):
            copy.write(chunk)
    loaded = cursor.rowcount
    for column in backup.columns:
        # sequences continue after the last row
        cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", (f'"{backup.table}"', column))
        (sequence,) = cast("tuple[str | None]", cursor.fetchone())
        if sequence is not None:
            highest = sql.SQL("SELECT setval({}, coalesce(max({}), 0) + 1, false) FROM {}")
            cursor.execute(highest.format(sql.Literal(sequence), sql.Identifier(column), name))
    return loaded


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _raw(connection: Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)
