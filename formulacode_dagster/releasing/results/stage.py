"""The stage `agent_results`: sum the runs of agents on the tasks of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from formulacode_dagster.models.agent_run import AgentResult
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import AGENT_RESULTS, AGENT_RUNS
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth

from .table import agent_results

TABLE = "table"
"""The step that sums all runs of the month: ranks and the Pareto front depend on all of them."""


@dataclass(frozen=True)
class AgentResultTools:
    """The newest release of the month."""

    released: ReleasedMonth


async def run(stage: StageRun, tools: AgentResultTools) -> StageSummary:
    """Sum the runs of the month, unless they are those that were summed before; raises as `run_items`."""
    with stage.database.transaction() as connection:
        runs = AGENT_RUNS.read(connection, stage.month)
    release, tasks = tools.released.tag, tools.released.frame.height

    def add_up(_: WorkItem[None]) -> Outcome[list[AgentResult]]:
        rows = agent_results(runs, stage.month, release, tasks)
        return Outcome(rows, detail=f"{len(runs)} runs of {len(rows)} agents on {tasks} tasks of {release}")

    def save(connection: Connection, tables: Sequence[list[AgentResult]]) -> None:
        for rows in tables:
            AGENT_RESULTS.replace_month(connection, stage.month, rows)

    inputs = fingerprint(Stage.AGENT_RESULTS, release, tasks, sorted(each.run_id for each in runs))
    return await run_items(stage, ItemKind.STEP, [WorkItem(TABLE, inputs, None)], in_thread(add_up), save)
