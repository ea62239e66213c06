"""Applies missing `sql/migrations/*.sql`, in order and in one transaction, and records them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import InternalError, OperationalError

from formulacode_dagster.models.errors import BusyError, ConfigurationError
from formulacode_dagster.operating.files.shipped import shipped

FOLDER = "sql/migrations"
_LOCK = 0x666F726D756C61  # one migration at a time, whichever process starts it
LOCK_SECONDS = 10
"""Time a migration waits for a table; later requests for the table wait behind it."""
_VIEWS = "views"
"""Name under which the checksum of the views is stored with those of the migrations."""
_TABLE = re.compile(r"\b(?:CREATE TABLE(?: IF NOT EXISTS)?|RENAME TO) (\w+)", re.IGNORECASE)
"""Every name that objects made by migrations have ever had."""
_BOOKKEEPING = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    name       text        PRIMARY KEY,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True)
class Migration:
    """One numbered SQL file."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, which must not change once applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(folder: Path | None = None) -> tuple[Migration, ...]:
    """Return all migrations of *folder*, in order; raises ConfigurationError if there is none."""
    folder = folder or shipped(FOLDER)
    migrations = tuple(Migration(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.sql")))
    if not migrations:
        raise ConfigurationError(f"no migrations in {folder}", remedy="Run from a complete checkout")
    return migrations


@dataclass(frozen=True)
class Views:
    """Views, recreated whenever the tables or their own text change."""

    names: tuple[str, ...]
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrate(
    engine: Engine, migrations: tuple[Migration, ...] | None = None, views: Views | None = None
) -> tuple[str, ...]:
    """Bring the database up to date, *views* included; returns the names of the migrations applied now.

    All or nothing: if a migration fails, the earlier ones of the call are not applied, and no view is dropped. Raises
    ConfigurationError if an applied file has changed since, the database is ahead of this checkout, or a user's object
    depends on a view that must be recreated; BusyError if a running month holds a table for longer than `LOCK_SECONDS`,
    since all others would wait behind the migration.
    """
    wanted = migrations if migrations is not None else read_migrations()
    with _locked(engine), engine.connect() as connection:
        try:
            connection.exec_driver_sql(_BOOKKEEPING)
            connection.commit()
            applied = _applied(connection)
            connection.commit()
            shown = applied.pop(_VIEWS, None)
            _verify(applied, wanted)
            pending = [migration for migration in wanted if migration.name not in applied]
            remade = views if views is not None and (pending or shown != views.checksum) else None
            with connection.begin():
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
                connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
                if remade is not None:
                    _drop(connection, remade)
                for migration in pending:
                    _apply(connection, migration)
                if remade is not None:
                    _apply(connection, Migration(_VIEWS, remade.sql))
        finally:
            connection.rollback()
    return tuple(migration.name for migration in pending)


@contextmanager
def _locked(engine: Engine) -> Iterator[None]:
    """Hold the migration lock: no other process migrates meanwhile; it is a transaction lock, so it works through
    poolers.
    """
    with engine.connect() as holder:
        for timeout in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            holder.exec_driver_sql(f"SET LOCAL {timeout} = 0")
        holder.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        yield


def rewind(engine: Engine, wanted: tuple[Migration, ...], views: Views) -> bool:
    """Drop tables and *views* beyond *wanted* from a database without rows; returns True if there were any.

    Later migrations then apply to the rows restored first. Raises ConfigurationError as `migrate`.
    """
    known = read_migrations()
    with _locked(engine), engine.begin() as connection:
        applied = _applied_if_any(connection)
        _verify(applied, known)
        if applied.keys() <= {migration.name for migration in wanted}:
            return False
        _drop(connection, views)
        scripts = [*(migration.sql for migration in known), views.sql]
        made = {name for script in scripts for name in _TABLE.findall(script)} | {"schema_migrations"}
        there = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"))
        connection.exec_driver_sql(f"DROP TABLE {', '.join(sorted(made & set(there.scalars())))}")
    return True


def _applied_if_any(connection: Connection) -> dict[str, str]:
    has_any = connection.execute(text("SELECT to_regclass('schema_migrations') IS NOT NULL")).scalar_one()
    applied = _applied(connection) if has_any else {}
    applied.pop(_VIEWS, None)
    return applied


def _applied(connection: Connection) -> dict[str, str]:
    rows = connection.execute(text("SELECT name, checksum FROM schema_migrations"))
    return {row.name: row.checksum for row in rows}


def _verify(applied: dict[str, str], wanted: tuple[Migration, ...]) -> None:
    ahead = sorted(set(applied) - {migration.name for migration in wanted})
    if ahead:
        raise ConfigurationError(
            "the database is ahead of this checkout",
            why=f"it has {', '.join(ahead)}, which {shipped(FOLDER)} has not",
            remedy="Update the checkout, or point FC_DATABASE_URL to another database",
        )
    for migration in wanted:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise ConfigurationError(
                f"migration {migration.name} was changed after it was applied",
                remedy="Restore the file, and put the change in a new migration",
            )


def pending_migrations(engine: Engine) -> tuple[str, ...]:
    """Return the names of what `migrate` would apply, without writing. Raises ConfigurationError as `migrate`."""
    wanted = read_migrations()
    with engine.connect() as connection:
        applied = _applied_if_any(connection)
    _verify(applied, wanted)
    return tuple(migration.name for migration in wanted if migration.name not in applied)


@contextmanager
def _changing(what: str) -> Iterator[None]:
    """Raise BusyError naming *what* if another transaction holds a table that is to be changed."""
    try:
        yield
    except OperationalError as error:
        if not isinstance(error.orig, (LockNotAvailable, DeadlockDetected)):
            raise
        raise BusyError(
            f"{what} waits for a table that a run is using",
            why=str(error.orig).strip().splitlines()[0],
            remedy="Nothing was changed: migrate again when the month is done, or between two of its stages",
        ) from error


def _apply(connection: Connection, migration: Migration) -> None:
    with _changing(migration.name):
        connection.exec_driver_sql(migration.sql)
        connection.execute(
            text("INSERT INTO schema_migrations (name, checksum) VALUES (:name, :checksum)"),
            {"name": migration.name, "checksum": migration.checksum},
        )


def _drop(connection: Connection, views: Views) -> None:
    """Out of the way of migrations, which could not change a table under a view."""
    try:
        with _changing("remaking the views"):
            connection.execute(text("DELETE FROM schema_migrations WHERE name = :name"), {"name": _VIEWS})
            there = connection.execute(text("SELECT viewname FROM pg_views WHERE schemaname = current_schema()"))
            for name in sorted(set(there.scalars()) & set(views.names)):
                connection.exec_driver_sql(f"DROP VIEW {name}")
    except InternalError as error:
        raise ConfigurationError(
            "the views cannot be remade",
            why=str(error.orig).strip(),
            remedy="Drop the objects that depend on them, migrate, and create them again",
        ) from error
