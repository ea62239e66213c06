"""The command that a failed run names, and homes in which nothing is run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from formulacode_dagster.cli import operate
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.repositories import record_github
from tests.support.command_line import FcData, complaint
from tests.support.github import repository

LOSSES = [
    SimpleNamespace(stage=Stage.PULL_REQUESTS, state=ItemState.FAILED, examples=("a/b#1",)),
    SimpleNamespace(stage=Stage.GRADINGS, state=ItemState.REJECTED, examples=("a/b#2",)),
]


@pytest.mark.parametrize(
    ("stages", "command"),
    [
        ((), "fc-data why a/b#1"),
        ((Stage.GRADINGS,), "fc-data why a/b#2"),
        ((Stage.IMAGES,), "fc-data funnel --month 2026-01"),
    ],
)
def test_a_failed_run_names_an_item_that_its_stages_lost(
    monkeypatch: pytest.MonkeyPatch, stages: tuple[Stage, ...], command: str
) -> None:
    monkeypatch.setattr(operate, "read_funnel", lambda *_: SimpleNamespace(losses=LOSSES))
    store: Any = None
    assert operate._tells_more(store, [Month.parse("2026-01")], stages) == command


@pytest.mark.parametrize("command", [("demo",), ("run", "--month", "2026-02")])
def test_nothing_is_done_in_a_home_of_another_github(
    command: tuple[str, ...], database: Database, database_url: str, call_fc_data: FcData, tmp_path: Path
) -> None:
    with database.transaction() as connection:
        REPOSITORIES.save(connection, [repository(full_name="numpy/numpy")])
        record_github(connection, "github.com")
    answer = call_fc_data(*command, FC_DATABASE_URL=database_url, GITHUB_API_URL="http://127.0.0.1:1")
    said = complaint(answer)
    assert said.startswith("this home has months of github.com, and none of localhost")
    assert "Set another FC_HOME for localhost" in said
    assert not (tmp_path / "home" / "sandbox").exists()
    with database.transaction() as connection:
        assert ledger.entries_of(connection, "2026-02") == []
