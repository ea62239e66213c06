"""The stage `agent_results`: sum the runs of agents on the tasks of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from formulacode_dagster.models.agent_run import AgentResult, AgentRun
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import AGENT_RESULTS, AGENT_RUNS
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth

from .contamination import Cutoffs
from .table import agent_results
from .task_facts import MARKS, marked, of_release

TABLE = "table"
"""The step that sums all runs of the month: ranks and the Pareto front depend on all of them."""


@dataclass(frozen=True)
class AgentResultTools:
    """The newest release of the month, and the table of models."""

    released: ReleasedMonth
    cutoffs: Cutoffs


@dataclass(frozen=True)
class SummedRuns:
    """The table, and the runs whose marks it changes."""

    rows: Sequence[AgentResult]
    changed: Sequence[AgentRun]


async def run(stage: StageRun, tools: AgentResultTools) -> StageSummary:
    """Sum the runs of the release, unless the same runs with the same verdicts were summed; raises as `run_items`.

    Runs of a task that was withdrawn, or got another image or statement, are left out.
    """
    with stage.database.transaction() as connection:
        runs = AGENT_RUNS.read(connection, stage.month)
    release, tasks = tools.released.tag, tools.released.frame.height
    kept = of_release(runs, tools.released.frame.iter_rows(named=True))
    ids = {run.run_id for run in kept}
    left_out = sorted(run.run_id for run in runs if run.run_id not in ids)

    def add_up(_: WorkItem[None]) -> Outcome[SummedRuns]:
        known = marked(runs, tools.released.frame.iter_rows(named=True), tools.cutoffs)
        rows = agent_results([run for run in known if run.run_id in ids], stage.month, release, tasks)
        detail = f"{len(kept)} runs of {len(rows)} agents on {tasks} tasks of {release}"
        if left_out:
            detail += f"; left out are {len(left_out)} whose task it lacks, or has with another image or statement"
        changed = [run for run, stored in zip(known, runs, strict=True) if run != stored]
        return Outcome(SummedRuns(rows, changed), detail=detail)

    def save(connection: Connection, tables: Sequence[SummedRuns]) -> None:
        for table in tables:
            AGENT_RUNS.amend(connection, table.changed, MARKS)
            AGENT_RESULTS.replace_month(connection, stage.month, table.rows)

    cutoffs = tools.cutoffs.model_dump_json()
    judged = sorted((run.run_id, run.hack) for run in runs)
    inputs = fingerprint(Stage.AGENT_RESULTS, release, tasks, judged, cutoffs, *left_out)
    return await run_items(stage, ItemKind.STEP, [WorkItem(TABLE, inputs, None)], in_thread(add_up), save)
