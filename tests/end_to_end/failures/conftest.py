from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from formulacode_dagster.models.items import Stage
from sandbox.samples import SampleSet
from tests.end_to_end.failures.platform_of_a_test import FAST, Platform
from tests.end_to_end.failures.seeds import Seeds
from tests.support.databases import DatabaseServer
from tests.support.sharing import RunFolder


@pytest.fixture(scope="session")
def seeds(
    database_server: DatabaseServer,
    run_folder: RunFolder,
    samples: SampleSet,
    dagster_instance: dg.DagsterInstance,
    tmp_path_factory: pytest.TempPathFactory,
) -> Seeds:
    """The seeds of the run."""
    return Seeds(database_server, run_folder, tmp_path_factory.mktemp("shared"), samples, dagster_instance)


@pytest.fixture
def seeded(seeds: Seeds, tmp_path: Path) -> Iterator[Callable[..., Platform]]:
    """Makes the platform of this test: `seeded(stage, …)` has done these stages, and nothing else."""
    made: list[Platform] = []

    def make(*stages: Stage, **options: Any) -> Platform:
        made.append(seeds.platform(tmp_path / "home", *stages, **options))
        return made[-1]

    yield make
    for platform in made:
        platform.close()


@pytest.fixture
def own_platform(samples: SampleSet, dagster_instance: dg.DagsterInstance, tmp_path: Path) -> Iterator[Platform]:
    """A platform that shares nothing: its embedded Postgres and its Dagster storage are below its home."""
    platform = Platform(tmp_path / "home", dict(FAST), samples, dagster_instance)
    yield platform
    platform.close()
    shutil.rmtree(platform.home, ignore_errors=True)
