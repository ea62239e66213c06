"""Postgres: a server of one's own, or the embedded one."""

from __future__ import annotations

import dagster as dg
from pydantic import PrivateAttr

from formulacode_dagster.operating.store.completions import StoredCompletions
from formulacode_dagster.operating.store.database import Database

from .base import SettingsResource, setting
from .database import open_database


class PostgresResource(SettingsResource):
    """Hands out the migrated database: that of FC_DATABASE_URL, else the embedded one."""

    home: str | None = setting("home")
    attempts_days: int | None = setting("attempts_days")
    runs_days: int | None = setting("runs_days")

    _database: Database | None = PrivateAttr(default=None)

    def database(self) -> Database:
        """Return the database, started if it is embedded, and migrated."""
        if self._database is None:
            self._database = open_database(settings=self.settings)
        return self._database

    def completions(self, *, reask: bool = False) -> StoredCompletions:
        """Return the cache of the model's answers; with *reask* everything is requested again, and stored next to the
        old ones.
        """
        return StoredCompletions(self.database(), reask=reask)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002 - Dagster's signature
        """Give back the connections."""
        if self._database is not None:
            self._database.close()
            self._database = None
