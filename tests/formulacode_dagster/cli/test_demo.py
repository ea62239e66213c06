"""The demo's runs of scripted agents: none that is stored is made again, and none that fails ends the demo."""

from __future__ import annotations

import pytest

from formulacode_dagster.cli.demo import AGENTS, GRADED, run_agents
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
from formulacode_dagster.operating.store.database import Database
from tests.support.agent_runs import agent_run


def test_runs_that_are_stored_are_not_made_again(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    # one that failed is not repeated either: a demo with nothing to do takes seconds
    runs = [agent_run("t", None, agent, month=month) for month in GRADED for agent in AGENTS]
    with database.transaction() as connection:
        AGENT_RUNS.save(connection, runs)
    assert run_agents(database) == 0
    assert capsys.readouterr().out == ""


def test_runs_that_cannot_be_made_are_reported(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setenv("HF_DATASET", "")
    assert run_agents(database) == 0
    said = capsys.readouterr()
    assert said.out.count("fc-data results run --release formulacode@2026-03 --agent oracle") == 1
    assert said.err.count("error: ") == len(GRADED) * len(AGENTS)
