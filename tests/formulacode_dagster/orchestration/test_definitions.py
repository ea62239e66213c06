"""Guards: the code location loads alone, quickly and without secrets, and a change of the graph shows in review."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from assets.checks import GATES
from formulacode_dagster.items.graph import UPSTREAM
from formulacode_dagster.models.items import Stage
from formulacode_dagster.orchestration.build import build_definitions

ROOT = Path(__file__).parents[2]
HEAVY = ("polars", "matplotlib", "openai", "docker", "huggingface_hub", "scipy", "graphql", "uvicorn")
BARE = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return build_definitions()


def test_the_graph_is_the_one_of_the_design(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {stage.value for stage in Stage}
    for stage in Stage:
        node = graph.get(dg.AssetKey(stage.value))
        assert {key.to_user_string() for key in node.parent_keys} == {one.value for one in UPSTREAM[stage]}
        assert node.group_name in {"intake", "selection", "build", "measure", "release"}
        assert all((node.owners, node.kinds, node.description))
        assert "dagster/column_schema" in node.metadata
        assert node.partitions_def is not None


def test_the_gates_are_the_ones_of_the_design(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    found = {(key.asset_key.to_user_string(), key.name): graph.get(key).blocking for key in graph.asset_check_keys}
    sampled = {("images", "reproduces"): False}
    assert found == {(gate.stage.value, gate.check): gate.blocking for gate in GATES} | sampled
    assert {key for key, blocking in found.items() if not blocking} == {
        ("repositories", "every_repository_resolves"),
        ("classifications", "share_of_positives"),
        ("images", "reproduces"),
    }
    assert len(found) == 23


def test_jobs_and_schedule_are_the_documented_ones(definitions: dg.Definitions) -> None:
    repository = definitions.get_repository_def()
    assert {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")} == {
        "month",
        "housekeeping",
        *(f"{stage.value}_only" for stage in Stage),
    }
    schedules = {one.name: one for one in repository.schedule_defs}
    assert {name: one.cron_schedule for name, one in schedules.items()} == {
        "monthly": "0 2 25 * *",
        "housekeeping_daily": "30 4 * * *",
    }
    schedule = schedules["monthly"]
    context = dg.build_schedule_context(
        scheduled_execution_time=datetime(2026, 3, 25, 2, 0, tzinfo=UTC), repository_def=repository
    )
    requests = schedule.evaluate_tick(context).run_requests
    assert [request.partition_key for request in requests or []] == ["2026-02"]


def test_the_code_location_loads_in_a_fresh_interpreter_without_secrets_or_heavy_libraries() -> None:
    code = (
        "import sys, formulacode_dagster.definitions as d; d.defs.get_repository_def();"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=BARE, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert loaded.stdout.strip() == "[]"


def test_the_workspace_validates_without_any_secret() -> None:
    command = [str(Path(sys.executable).with_name("dagster")), "definitions", "validate", "-w", "workspace.yaml"]
    validated = subprocess.run(command, env=BARE, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert validated.returncode == 0, validated.stderr
