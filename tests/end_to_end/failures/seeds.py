"""Months whose first stages are done, for tests that begin in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from formulacode_dagster.models.items import Stage
from sandbox.samples import SampleSet
from tests.end_to_end.failures.platform_of_a_test import FAST, Platform
from tests.support.databases import MIGRATED, DatabaseServer
from tests.support.sharing import RunFolder


class Seeds:
    """Databases in which the first stages of the month are done, made once in a run and cloned for each test."""

    def __init__(
        self,
        server: DatabaseServer,
        run: RunFolder,
        shared: Path,
        samples: SampleSet,
        instance: dg.DagsterInstance,
    ) -> None:
        """*shared* is where the tests of one process keep what costs more to make than most of them take."""
        self._server = server
        self._run = run
        self._shared = shared
        self._samples = samples
        self._instance = instance
        (shared / "dagster").mkdir()

    def platform(self, home: Path, *stages: Stage, **options: Any) -> Platform:
        """A platform of its own in which *stages* are done, the last of them with *options*."""
        template = MIGRATED
        if stages:
            # a seed's stages are the first ones of the month, so their number identifies it
            template = f"seed_{len(stages)}"
            self._run.once(template, lambda folder: self._make(folder, template, stages, options))
        return self._open(home, self._server.create(template))

    def _make(self, home: Path, name: str, stages: tuple[Stage, ...], options: dict[str, Any]) -> None:
        earlier = self.platform(home, *stages[:-1])
        with earlier.serve():
            said = earlier.run(stages[-1], **options)
        assert said.succeeded, said.text
        earlier.close()
        self._server.create(earlier.database.engine.url.database or "", name=name)

    def _open(self, home: Path, database_url: str) -> Platform:
        home.mkdir(parents=True)
        (home / "dagster").symlink_to(self._shared / "dagster")
        settings = {"FC_DATABASE_URL": database_url, "FC_MIRRORS_DIR": str(self._shared / "mirrors")}
        return Platform(home, FAST | settings, self._samples, self._instance)
