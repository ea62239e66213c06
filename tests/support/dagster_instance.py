"""An instance of Dagster for all runs of a process: to make one reads every migration of Dagster's own, twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import dagster as dg


@pytest.fixture(scope="session")
def dagster_instance() -> Iterator[dg.DagsterInstance]:
    """In memory, with the runs of earlier tests in it."""
    import dagster as dg

    with dg.DagsterInstance.ephemeral() as instance:
        yield instance
