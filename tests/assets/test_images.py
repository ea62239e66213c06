"""What is asked before hours of building."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.images import images
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.store.database import Database
from resources.defaults import default_resources
from sandbox.hub import app
from sandbox.server import serving
from tests.support.gates import open_gates

READER = "hf_ReadOnly"


@pytest.mark.parametrize("config", [{}, {"only": ["acme/fast"]}, {"dry_run": True}])
def test_a_whole_month_is_not_built_for_a_dataset_that_we_may_not_write(
    config: dict[str, Any],
    database: Database,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dagster_instance: dg.DagsterInstance,
) -> None:
    open_gates(database, images, "2026-02")
    with serving(app(tmp_path / "hub", tokens=frozenset({READER}), readers=frozenset({READER}))) as url:
        settings = {"FC_HOME": str(tmp_path / "home"), "FC_DATABASE_URL": database_url, "FC_ENGINE": "process"}
        for name, value in {**settings, "HF_DATASET": "acme/tasks", "HF_ENDPOINT": url, "HF_TOKEN": READER}.items():
            monkeypatch.setenv(name, value)
        asset, known = images.definition, default_resources()
        ran = dg.materialize(
            [asset],
            partition_key="2026-02",
            instance=dagster_instance,
            resources={name: known[name] for name in asset.required_resource_keys if name in known},
            run_config={"ops": {asset.op.name: {"config": config}}},
            raise_on_error=False,
        )
    if config:
        assert ran.success
        return
    (failure,) = (event.step_failure_data.error for event in ran.all_node_events if event.is_step_failure)
    assert ConfigurationError.__name__ in str(failure)
    assert "HF_TOKEN" in str(failure)
