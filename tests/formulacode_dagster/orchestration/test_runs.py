"""Opening Dagster's instance from the command line."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.runs.sqlite import sqlite_run_storage

from formulacode_dagster.orchestration.runs import dagster_instance, set_pools

AT_ONCE = 4


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_pools_limit_is_the_setting_the_ui_value_or_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FC_POOLS", raising=False)
    with dg.DagsterInstance.local_temp(
        str(tmp_path), overrides={"concurrency": {"pools": {"default_limit": 4}}}
    ) as instance:
        storage = instance.event_log_storage
        # as Dagster does of a pool that a run asks for first
        storage.initialize_concurrency_limit_to_default("llm")
        assert [(info.name, info.limit) for info in storage.get_pool_limits()] == [("llm", 4)]
        assert set_pools(instance) == {"github": 2, "llm": 2, "build": 1, "measure": 1}
        # as the UI does
        storage.set_concurrency_slots("measure", 3)
        storage.set_concurrency_slots("build", 3)
        assert set_pools(instance) == {}
        monkeypatch.setenv("FC_POOLS", "measure=2")
        assert set_pools(instance) == {"measure": 2}
        assert set_pools(instance) == {}
        limits = {info.name: info.limit for info in storage.get_pool_limits()}
    assert limits == {"github": 2, "llm": 2, "build": 3, "measure": 2}
