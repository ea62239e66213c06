"""Postgres: a server of one's own, or the embedded one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from formulacode_dagster.store.completions import StoredCompletions
from formulacode_dagster.store.database import Database
from formulacode_dagster.store.embedded import start_embedded


class PostgresResource(dg.ConfigurableResource[Any]):
    """Hands out the migrated database."""

    url: str
    home: str

    _database: Database | None = PrivateAttr(default=None)

    def database(self) -> Database:
        """The database, started where it is embedded, and up to date."""
        if self._database is None:
            database = Database(self.url or start_embedded(Path(self.home) / "postgres"))
            database.migrate()
            self._database = database
        return self._database

    def completions(self) -> StoredCompletions:
        """The cache of the model's answers."""
        return StoredCompletions(self.database())

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002 - Dagster's signature
        """Give back the connections."""
        if self._database is not None:
            self._database.close()
            self._database = None
