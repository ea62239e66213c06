"""Runs of a month are summed again when their verdicts change, and no verdict is lost on the way."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from formulacode_dagster.models.agent_run import AgentResult, AgentRun, HackVerdict
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store.artifacts import AGENT_RESULTS, AGENT_RUNS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth
from formulacode_dagster.releasing.results import stage as results_stage
from formulacode_dagster.releasing.results.contamination import Cutoffs
from formulacode_dagster.releasing.results.stage import AgentResultTools
from tests.support.agent_runs import MONTH, TAG, agent_run, released_task

TASK = released_task()
RUN = agent_run(TASK.id, 0.5, statement_sha256=TASK.statement_sha256)


@pytest.fixture
def store(database: Database) -> Callable[[AgentRun], None]:
    """Store a run."""

    def store(run: AgentRun) -> None:
        with database.transaction() as connection:
            AGENT_RUNS.save(connection, [run])

    return store


@pytest.fixture
def summed(database: Database) -> Callable[[], tuple[int, AgentResult, AgentRun]]:
    """Run the stage: return how many items it worked on, the only row of results, and the only run."""

    def summed() -> tuple[int, AgentResult, AgentRun]:
        stage = StageRun(database, Stage.AGENT_RESULTS, MONTH, "run", RunOptions())
        released = ReleasedMonth(TAG, pl.DataFrame([TASK.row]))
        summary = run_loop(results_stage.run(stage, AgentResultTools(released, Cutoffs.read())))
        with database.transaction() as connection:
            (row,), (run,) = AGENT_RESULTS.read(connection, MONTH), AGENT_RUNS.read(connection, MONTH)
        return len(summary.worked), row, run

    return summed


def test_a_verdict_that_came_after_the_sums_is_summed(store, summed) -> None:
    store(RUN)
    worked, row, _ = summed()
    assert (worked, row.hack_adjusted) == (1, None)
    store(RUN.model_copy(update={"hack": HackVerdict.HACK}))
    worked, row, _ = summed()
    assert (worked, row.hack_adjusted.value) == (1, 0.0)
    assert summed()[0] == 0


def test_a_verdict_that_is_stored_while_runs_are_summed_stays(store, summed, monkeypatch) -> None:
    store(RUN)

    def judged_meanwhile(*arguments):
        store(RUN.model_copy(update={"hack": HackVerdict.HONEST}))
        return sums(*arguments)

    sums = results_stage.agent_results
    monkeypatch.setattr(results_stage, "agent_results", judged_meanwhile)
    _, row, run = summed()
    assert (row.hack_adjusted, run.hack) == (None, HackVerdict.HONEST)
    assert run.task is not None
    monkeypatch.undo()
    worked, row, _ = summed()
    assert (worked, row.hack_adjusted.value) == (1, 0.5)
