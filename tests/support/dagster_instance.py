"""An instance of Dagster for all runs of a process: to make one reads every migration of Dagster's own, twice."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest


@pytest.fixture(scope="session")
def dagster_instance() -> Iterator[dg.DagsterInstance]:
    """In memory, with the runs of earlier tests in it."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance
