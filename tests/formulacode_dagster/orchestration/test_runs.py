"""Opening Dagster's instance from the command line."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dagster._core.storage.runs.sqlite import sqlite_run_storage

from formulacode_dagster.orchestration.runs import dagster_instance

AT_ONCE = 4


def test_a_home_that_is_new_can_be_opened_by_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `fc-data run` and `fc-data assist` that are started together do."""
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.delenv("FC_DAGSTER_DATABASE_URL", raising=False)
    together = threading.Barrier(AT_ONCE)
    look = sqlite_run_storage.check_alembic_revision

    def look_slowly(*given: object) -> object:
        """Between looking whether a file is new and making it, there is time for another to do the same."""
        seen = look(*given)
        time.sleep(0.2)
        return seen

    monkeypatch.setattr(sqlite_run_storage, "check_alembic_revision", look_slowly)

    def runs() -> int:
        together.wait()
        with dagster_instance() as instance:
            return len(instance.get_runs())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert [future.result() for future in [pool.submit(runs) for _ in range(AT_ONCE)]] == [0] * AT_ONCE
