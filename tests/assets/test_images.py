"""Checks before hours of building."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from assets.images import images
from formulacode_dagster.building.agents.protocol import Agent, AgentBudget
from formulacode_dagster.building.images.stage import run
from formulacode_dagster.building.synthesis.month import MonthAuthors
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from resources.containers import ContainersResource
from resources.defaults import default_resources
from resources.mirrors import MirrorsResource
from resources.tools import image_tools
from sandbox.hub import app
from sandbox.registry import app as registry
from sandbox.server import serving
from tests.support.agents import StubAgent, edited
from tests.support.gates import open_gates
from tests.support.planned import KEYED, plan_month
from tests.support.planned import MONTH as PLANNED
from tests.support.registries import USER, guarded

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
        ran = materialized(dagster_instance, config)
    if config:
        assert ran.success
        return
    assert "HF_TOKEN" in refusal_of(ran)


@pytest.mark.parametrize("engine", EngineName)
def test_a_whole_month_is_not_built_for_a_registry_that_refuses_us(
    engine: EngineName,
    database: Database,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dagster_instance: dg.DagsterInstance,
) -> None:
    open_gates(database, images, "2026-02")
    if engine is EngineName.DOCKER:
        monkeypatch.setattr(ContainersResource, "engine_for", lambda *_: (SimpleNamespace(name=engine), "it is there"))
    monkeypatch.setenv("FC_ENGINE", "process")
    with serving(guarded(registry(tmp_path / "registry"))) as url:
        settings = {"FC_HOME": str(tmp_path / "home"), "FC_DATABASE_URL": database_url, "FC_REGISTRY_URL": url}
        for name, value in {**settings, "DOCKERHUB_USERNAME": USER, "DOCKERHUB_TOKEN": "mistyped"}.items():
            monkeypatch.setenv(name, value)
        ran = materialized(dagster_instance, {})
    # folders of the process engine are not pushed
    if engine is EngineName.PROCESS:
        assert ran.success
    else:
        assert "DOCKERHUB_TOKEN" in refusal_of(ran)


def materialized(instance: dg.DagsterInstance, config: dict[str, Any]) -> dg.ExecuteInProcessResult:
    asset, known = images.definition, default_resources()
    return dg.materialize(
        [asset],
        partition_key="2026-02",
        instance=instance,
        resources={name: known[name] for name in asset.required_resource_keys if name in known},
        run_config={"ops": {asset.op.name: {"config": config}}},
        raise_on_error=False,
    )


def refusal_of(ran: dg.ExecuteInProcessResult) -> str:
    """The error of the only failed step, which a setting mends."""
    (failure,) = (event.step_failure_data.error for event in ran.all_node_events if event.is_step_failure)
    assert ConfigurationError.__name__ in str(failure)
    return str(failure)


@pytest.mark.network
@pytest.mark.slow
def test_a_later_month_with_an_agent_builds_what_no_rule_repaired(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_month(database, tmp_path, monkeypatch, engine="process", files=KEYED)
    names = ["Acme/tiny#5", "Acme/tiny#6"]
    planned = [
        LedgerEntry(stage=Stage.ENVIRONMENTS, month=PLANNED.key, item=name, state=ItemState.DONE) for name in names
    ]
    with database.transaction() as connection:
        ledger.record(connection, planned)
    agent = StubAgent(edited(environment={"TINY_KEY": "1"}))

    def built(run_id: str, agent: Agent | None = None) -> tuple[list[str], list[ItemState]]:
        """The items that were worked on, and how all stand."""
        options = RunOptions(agent_concurrency=2)
        stage = StageRun(database, Stage.IMAGES, PLANNED.key, run_id, options)
        authors = None if agent is None else MonthAuthors.of(stage, agent, AgentBudget(), {}, 1)
        summary = run_loop(run(stage, image_tools(stage, MirrorsResource(), ContainersResource(), authors)))
        return sorted(entry.item for entry in summary.worked), [entry.state for entry in summary.standing]

    assert built("plain") == (names, [ItemState.FAILED, ItemState.FAILED])
    assert built("again") == ([], [ItemState.FAILED, ItemState.FAILED])
    assert built("asked", agent) == (names, [ItemState.DONE, ItemState.DONE])
    assert {task.item for task in agent.tasks} <= set(names)
    assert all("say which key" in task.attempts[0].log for task in agent.tasks), "what was tried before is shown"
    assert built("still", agent) == ([], [ItemState.DONE, ItemState.DONE])
