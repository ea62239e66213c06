"""`fc-data assist`: which stages of others this machine helps with."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from itertools import pairwise

import pytest
import typer

from formulacode_dagster.cli import assist as command
from formulacode_dagster.cli.assist import assist
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.claims import ClaimableItem, SharedStage, Worker
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.orchestration import runs

MONTH = "2026-02"


def share(database: Database, stage: Stage) -> None:
    """Let a run lead *stage*, with one free item."""
    leader = Worker(stage, MONTH, "leader", timedelta(minutes=1))
    with database.transaction() as connection:
        claims.open_stage(connection, leader, "leader", RunOptions(), [ClaimableItem("a/b#1", "v1", "a/b", 0.0)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "helped"),
    [(None, [Stage.ENVIRONMENTS, Stage.IMAGES]), ([Stage.ENVIRONMENTS], [Stage.ENVIRONMENTS]), ([Stage.REPLAYS], [])],
)
def test_all_that_is_shared_is_helped_with_or_the_stages_that_are_named(
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[Stage] | None,
    helped: list[Stage],
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    for stage in (Stage.ENVIRONMENTS, Stage.IMAGES):
        share(database, stage)
    done: list[Stage] = []

    def do_all(_: object, shared: SharedStage) -> runs.MonthResult:
        done.append(shared.stage)
        with database.transaction() as connection:
            helper = Worker(shared.stage, shared.month, "helper", timedelta(minutes=1))
            assert claims.claim(connection, helper)
        return runs.MonthResult(shared.month, "a run", success=True, errors=(), failed_checks=())

    monkeypatch.setattr(runs, "dagster_instance", nullcontext)
    monkeypatch.setattr(runs, "assist_stage", do_all)
    with pytest.raises(typer.Exit) as ended:
        assist(once=True, stages=asked)
    assert ended.value.exit_code == 0
    assert done == helped


class SleptClock:
    """Time that passes only by being slept away."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_machine_that_fails_three_times_in_a_row_gives_up(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    clock = SleptClock()
    monkeypatch.setattr(command, "time", clock)
    monkeypatch.setattr(command, "stop_request", lambda: clock)
    share(database, Stage.IMAGES)
    ends = [False, False, True, False, False, False]
    began: list[float] = []

    def fail(_: object, shared: SharedStage) -> runs.MonthResult:
        began.append(clock.now)
        return runs.MonthResult(shared.month, "a run", ends.pop(0), errors=("no daemon",), failed_checks=())

    monkeypatch.setattr(runs, "dagster_instance", nullcontext)
    monkeypatch.setattr(runs, "assist_stage", fail)
    said = r"cannot help with images: it failed 3 times in a row: no daemon.*--stage"
    with pytest.raises(ConfigurationError, match=said):
        assist()
    assert ends == []
    # looks every 5 s; a success ends the count
    assert [after - before for before, after in pairwise(began)] == [60.0, 300.0, 5.0, 60.0, 300.0]
