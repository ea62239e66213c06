"""Months whose first stages are done, for tests that begin in the middle."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from sqlalchemy import text

from formulacode_dagster.models.items import Stage
from formulacode_dagster.store.database import Database
from sandbox.samples import SampleSet
from tests.end_to_end.failures.platform_of_a_test import FAST, Platform


class Seeds:
    """Databases in which the first stages of the month are done, made once and cloned for each test."""

    def __init__(self, server: str, shared: Path, samples: SampleSet) -> None:
        self._server = Database(server)
        self._shared = shared
        self._samples = samples
        self._made: dict[tuple[Stage, ...], str] = {(): "template0"}
        (shared / "dagster").mkdir()

    def platform(self, home: Path, *stages: Stage, **options: Any) -> Platform:
        """A platform of its own in which *stages* are done, the last of them with *options*."""
        if stages not in self._made:
            earlier = self.platform(self._shared / f"seed-{len(stages)}", *stages[:-1])
            with earlier.serve():
                said = earlier.run(stages[-1], **options)
            assert said.succeeded, said.text
            earlier.close()
            self._made[stages] = earlier.database.engine.url.database or ""
        home.mkdir(parents=True)
        # Dagster's storage and the mirrors are shared: making them costs more than most of the tests
        (home / "dagster").symlink_to(self._shared / "dagster")
        settings = {"FC_DATABASE_URL": self._clone(self._made[stages]), "FC_MIRRORS_DIR": str(self._shared / "mirrors")}
        return Platform(home, FAST | settings, self._samples)

    def _clone(self, template: str) -> str:
        name = f"failure_{uuid.uuid4().hex[:12]}"
        with self._server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'))
        return self._server.engine.url.set(database=name).render_as_string(hide_password=False)

    def close(self) -> None:
        """Give back the connections."""
        self._server.close()
