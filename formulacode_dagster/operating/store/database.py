"""The connection to Postgres: transactions, the lock on a month, and errors in our own words."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from formulacode_dagster.models.errors import BusyError, ConfigurationError, OutsideSystemError
from formulacode_dagster.models.items import Stage

from .migrations import migrate, pending_migrations
from .views import VIEWS

CONNECT_SECONDS = 10
KEPT_CONNECTIONS = 8
LOCK_TRIES = 5
LOCK_PAUSE = 0.2
_IDLE, _INTERVAL, _COUNT = 30, 10, 3
GONE_SECONDS = _IDLE + _INTERVAL * _COUNT
"""After so long without a sign of life from a machine, its sessions end, and with them its locks."""
_SERVER_KEEPALIVES = {
    "tcp_keepalives_idle": str(_IDLE),
    "tcp_keepalives_interval": str(_INTERVAL),
    "tcp_keepalives_count": str(_COUNT),
}
_CLIENT_KEEPALIVES = {"keepalives_idle": _IDLE, "keepalives_interval": _INTERVAL, "keepalives_count": _COUNT}
# an answer that the other side never confirmed counts too; not for sessions that may read slowly, as backups do
_STAY_OPEN = text(
    "SELECT set_config('idle_in_transaction_session_timeout', '0', true),"
    f" set_config('tcp_user_timeout', '{GONE_SECONDS}s', true)"
)
# a server has many databases, and advisory locks are per database
_LOCK_HOLDER = text(
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    " JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = :key AND l.objsubid = 1"
)
_IS_HELD = text(
    "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND (l.classid::bigint << 32 | l.objid::bigint) = :key)"
)
_DISK_FULL = "No space left on device"
_OUT_OF_RESOURCES = "53"  # SQLSTATE class: disk full, out of memory, too many connections


@dataclass(frozen=True)
class ServerLimits:
    """Limits of one process on the server; 0 seconds: no limit of ours."""

    connections: int = 18
    """Maximum, of which eight stay open."""
    statement_seconds: int = 0
    lock_seconds: int = 0
    idle_seconds: int = 0
    """Timeout of an idle transaction."""
    transaction_pooling: bool = False
    """A pooler hands out connections by transaction: nothing lives longer on one than that."""

    @property
    def timeouts(self) -> dict[str, str]:
        """By the server's names."""
        seconds = {
            "statement_timeout": self.statement_seconds,
            "lock_timeout": self.lock_seconds,
            "idle_in_transaction_session_timeout": self.idle_seconds,
        }
        return {name: f"{value}s" for name, value in seconds.items() if value}


class Database:
    """A Postgres with our schema. Cheap to make; connects on first use; safe to share between threads."""

    def __init__(self, url: str, limits: ServerLimits = ServerLimits()) -> None:
        """*url* is any SQLAlchemy or libpq style Postgres URL; raises ConfigurationError for anything else."""
        try:
            parsed = make_url(url)
        except ArgumentError as error:
            raise ConfigurationError(
                "FC_DATABASE_URL is not a database URL", remedy="Write postgresql://user:password@host:port/name"
            ) from error
        if not parsed.drivername.startswith(("postgresql", "postgres")):
            raise ConfigurationError(
                f"FC_DATABASE_URL names a {parsed.drivername!r} database", remedy="Only Postgres is supported"
            )
        connect: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "formulacode",
            **_CLIENT_KEEPALIVES,
        }
        if limits.transaction_pooling:
            # the next transaction may be on another connection, which has not prepared it
            connect["prepare_threshold"] = None
        elif "options" not in parsed.query:
            told = {**_SERVER_KEEPALIVES, **limits.timeouts}
            connect["options"] = " ".join(f"-c {name}={value}" for name, value in told.items())
        kept = min(KEPT_CONNECTIONS, limits.connections)
        self.engine: Engine = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            pool_size=kept,
            max_overflow=limits.connections - kept,
            connect_args=connect,
        )
        if limits.transaction_pooling and limits.timeouts:
            local = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in limits.timeouts.items())
            event.listen(self.engine, "begin", lambda connection: connection.exec_driver_sql(local))

    @property
    def where(self) -> str:
        """Host and database, without the password."""
        return self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run all or nothing; a server that is gone raises OutsideSystemError, which stops the stage."""
        with self._reached(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except PoolTimeout as error:
            raise ConfigurationError(
                "all connections to Postgres that this process may have are in use",
                why=str(error),
                remedy="Raise FC_DATABASE_CONNECTIONS, or lower the concurrency",
            ) from error
        except DBAPIError as error:
            if isinstance(error, (OperationalError, InterfaceError)) or error.connection_invalidated:
                raise self._gone(error) from error
            raise

    def room(self) -> int:
        """Return how many connections the server allows to ordinary users in total."""
        allowed = (
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        )
        with self.transaction() as connection:
            return int(connection.execute(text(allowed)).scalar_one())

    def migrate(self) -> tuple[str, ...]:
        """Apply the missing `sql/migrations`, and recreate the views; returns the names of what was applied."""
        with self._reached():
            return migrate(self.engine, views=VIEWS)

    def pending_migrations(self) -> tuple[str, ...]:
        """Return what `migrate` would apply."""
        with self._reached():
            return pending_migrations(self.engine)

    @contextmanager
    def month_lock(self, stage: Stage, month: str, run_id: str) -> Iterator[None]:
        """Hold the lock on (stage, month) during the block; raises BusyError if another run holds it.

        The server lets go of the lock when the process dies, `kill -9` included, and `GONE_SECONDS` after its machine
        does. It is that of a transaction, which stays open meanwhile: so a pooler keeps the connection for us.
        """
        key = zlib.crc32(f"{stage}/{month}".encode())
        # 63 bytes is all that Postgres keeps: just enough for the longest stage and a whole run id
        label = f"{stage}/{month} {run_id}"[:63]
        with self._reached(), self.engine.connect() as connection:
            _stay_open(connection)
            connection.execute(text("SELECT set_config('application_name', :label, true)"), {"label": label})
            holder = self._take_lock(connection, key)
            if holder:
                raise BusyError(
                    f"{stage} of {month} is being materialized by another run",
                    why=holder,
                    remedy="Wait for it or terminate it, then launch this one again",
                )
            try:
                yield
            finally:
                _let_go(connection)

    @contextmanager
    def lease(self, name: str) -> Iterator[bool]:
        """Hold the lock *name* during the block if it is free; yields whether it was, without waiting.

        The server lets go of it as of that of a month.
        """
        with self._reached(), self.engine.connect() as connection:
            _stay_open(connection)
            taken = _try_lock(connection, name)
            if not taken:
                _let_go(connection)
            try:
                yield taken
            finally:
                _let_go(connection)

    @contextmanager
    def share(self, name: str) -> Iterator[Callable[[str], bool]]:
        """Hold the shared lock *name* during the block; yields a function that reports whether another lock is held.

        The server lets go of *name* as of a month.
        """
        with self._reached(), self.engine.connect() as connection:
            _stay_open(connection)
            connection.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _key_of(name)})

            def is_held(other: str) -> bool:
                # looked up: trying to take it would look like holding it to all who ask at that moment
                return bool(connection.execute(_IS_HELD, {"key": _key_of(other)}).scalar_one())

            try:
                yield is_held
            finally:
                _let_go(connection)

    def _take_lock(self, connection: Connection, key: int) -> str:
        """Return an empty string once the lock is ours, else its holder. A run killed a moment ago is waited for."""
        holder = ""
        for _ in range(LOCK_TRIES):
            taken = connection.execute(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": key}).scalar_one()
            if taken:
                return ""
            # a transaction sees the sessions as they were when it first looked
            connection.execute(text("SELECT pg_stat_clear_snapshot()"))
            holder = connection.execute(_LOCK_HOLDER, {"key": key}).scalar() or "unknown"
            time.sleep(LOCK_PAUSE)
        return holder

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()

    def _gone(self, error: DBAPIError) -> OutsideSystemError:
        # a refused connection has no code
        if str(getattr(error.orig, "sqlstate", "")).startswith(_OUT_OF_RESOURCES) or _DISK_FULL in str(error.orig):
            return OutsideSystemError(
                "postgres",
                f"{self.where} is out of resources",
                why=str(error.orig).strip().splitlines()[0],
                remedy="Free disk space, memory or connections there, then run the month again: nothing is lost",
            )
        return OutsideSystemError(
            "postgres",
            f"{self.where} does not answer",
            why=str(error.orig).strip().splitlines()[0] if error.orig else str(error),
            remedy="Start it or fix FC_DATABASE_URL, then run the month again: it continues where this run stopped",
        )


def _key_of(name: str) -> int:
    """The key of a lock, beyond the 32 bits of those of months."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _try_lock(connection: Connection, name: str) -> bool:
    """Return True if *name* belongs to this transaction from now on."""
    return bool(connection.execute(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _key_of(name)}).scalar_one())


def _stay_open(connection: Connection) -> None:
    """Let the server end the transaction, idle while a lock is held, only if this client is gone."""
    connection.execute(_STAY_OPEN)


def _let_go(connection: Connection) -> None:
    """End the transaction, and with it its locks, at once; a server that is gone has ended it."""
    with suppress(DBAPIError):
        connection.rollback()
