"""The showcase of the demo, and its runs of scripted agents: stored ones are not repeated, a failed one is reported."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from formulacode_dagster.cli import site
from formulacode_dagster.cli.demo import AGENTS, DEMO_MONTHS, GRADED, run_agents, write_showcase
from formulacode_dagster.library import Dataset
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset import hub_client
from formulacode_dagster.sources.dashboards.sites import RESULTS
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


def test_the_showcase_replaces_only_its_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def download(*_: object, local_dir: Path, **__: object) -> None:
        local_dir.mkdir(parents=True)
        (local_dir / "index.json").touch()

    monkeypatch.setattr(Dataset, "load", lambda: None)
    monkeypatch.setattr(hub_client, "hub_api", lambda *_: SimpleNamespace(snapshot_download=download))
    monkeypatch.setattr(site, "site", lambda *_, **__: None)
    raw = tmp_path / RESULTS / "numpy" / "benchmarks.json"
    report = tmp_path / "reports" / f"{DEMO_MONTHS[0]}.html"
    for path in (raw, report, tmp_path / "demo" / "dataset" / "of_the_last_demo"):
        path.parent.mkdir(parents=True)
        path.touch()
    folder = write_showcase(tmp_path, DEMO_MONTHS)
    assert folder is not None
    assert raw.exists()
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {"dataset/index.json", f"reports/{DEMO_MONTHS[0]}.html"}
