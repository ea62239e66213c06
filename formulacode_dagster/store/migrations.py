"""Applies `sql/migrations/*.sql` in order, each in a transaction of its own, and remembers which."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.shipped_files import shipped

FOLDER = "sql/migrations"
_LOCK = 0x666F726D756C61  # one migration at a time, whichever process starts it
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
    """All migrations of *folder*, in order; raises ConfigurationError when there is none."""
    folder = folder or shipped(FOLDER)
    found = tuple(Migration(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.sql")))
    if not found:
        raise ConfigurationError(f"no migrations in {folder}", remedy="Run from a complete checkout")
    return found


def migrate(engine: Engine, migrations: tuple[Migration, ...] | None = None) -> tuple[str, ...]:
    """Bring the database up to date; returns the names applied now.

    A migration that fails leaves nothing behind and the earlier ones in place: the next call goes on from there.
    Raises ConfigurationError when an applied file has changed since, or the database is ahead of this checkout.
    """
    wanted = migrations if migrations is not None else read_migrations()
    applied_now: list[str] = []
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
        connection.commit()
        try:
            connection.exec_driver_sql(_BOOKKEEPING)
            connection.commit()
            known = _applied(connection)
            connection.commit()
            _verify(known, wanted)
            for migration in wanted:
                if migration.name not in known:
                    _apply(connection, migration)
                    applied_now.append(migration.name)
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _LOCK})
            connection.commit()
    return tuple(applied_now)


def _applied(connection: Connection) -> dict[str, str]:
    rows = connection.execute(text("SELECT name, checksum FROM schema_migrations"))
    return {row.name: row.checksum for row in rows}


def _verify(known: dict[str, str], wanted: tuple[Migration, ...]) -> None:
    ahead = sorted(set(known) - {migration.name for migration in wanted})
    if ahead:
        raise ConfigurationError(
            "the database is ahead of this checkout",
            why=f"it has {', '.join(ahead)}, which {shipped(FOLDER)} has not",
            remedy="Update the checkout, or point FC_DATABASE_URL to another database",
        )
    for migration in wanted:
        if known.get(migration.name, migration.checksum) != migration.checksum:
            raise ConfigurationError(
                f"migration {migration.name} was changed after it was applied",
                remedy="Restore the file, and put the change in a new migration",
            )


def _apply(connection: Connection, migration: Migration) -> None:
    with connection.begin():
        connection.exec_driver_sql(migration.sql)
        connection.execute(
            text("INSERT INTO schema_migrations (name, checksum) VALUES (:name, :checksum)"),
            {"name": migration.name, "checksum": migration.checksum},
        )
