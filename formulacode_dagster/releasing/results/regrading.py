"""Grades the stored changes of runs again, with this version's grader; the first grading stays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.models.agent_run import AgentRun, RunState
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
from formulacode_dagster.operating.store.blobs import get_blob
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.exports.write import export_task

from .recorded import GraderReport, RecordedRun
from .redaction import Redaction
from .released import ReleasedTask
from .taking import rows_of

Grade = Callable[[Path, bytes], Mapping[str, Any]]
"""Returns the grader's report on a patch at an exported task; `releasing.exports.evaluate.grade_diff`."""


@dataclass(frozen=True)
class Regraded:
    """A run, and its second grading; or why there is none."""

    run: AgentRun
    again: AgentRun | None
    why: str = ""


def outdated(runs: Sequence[AgentRun], tasks: Mapping[str, ReleasedTask], *, every: bool = False) -> list[AgentRun]:
    """Return the graded *runs* with stored changes that this version's grader has not judged; *every*: not twice."""
    graded = [run for run in runs if run.state is RunState.GRADED]
    judged = {run.regrade_of for run in graded if run.regrade_of and _is_current(run, tasks)}
    return [
        run
        for run in graded
        if not run.regrade_of
        and run.diff_sha256
        and run.run_id not in judged
        and run.task_id in tasks
        and (run.image_digest, run.statement_sha256) == _given(tasks[run.task_id])
        and (every or not _is_current(run, tasks))
    ]


def _is_current(run: AgentRun, tasks: Mapping[str, ReleasedTask]) -> bool:
    task = tasks.get(run.task_id)
    return task is not None and run.grader_sha256 == task.identity.grader_sha256


def _given(task: ReleasedTask) -> tuple[str, str]:
    """Image and statement that the agent had."""
    return str(task.row["image_digest"]), task.statement_sha256


def regrade(
    database: Database,
    runs: Sequence[AgentRun],
    tasks: Mapping[str, ReleasedTask],
    folder: Path,
    grade: Grade,
    progress: ProgressReporter,
) -> list[Regraded]:
    """Grade each of *runs* again, and store that as a run of its own; *folder* gets the exported tasks.

    Raises OutsideSystemError if Docker does not answer.
    """
    done = []
    for number, run in enumerate(runs, start=1):
        progress(f"{number} of {len(runs)}: {run.contestant}, {run.task_id}")
        task = tasks[run.task_id]
        try:
            exported = export_task(task.row, HarnessFormat.HARBOR, folder / task.id)
            with database.transaction() as connection:
                diff = get_blob(connection, run.diff_sha256)
            report = grade(exported, diff)
        except ItemFailure as failure:
            done.append(Regraded(run, None, str(failure)))
            continue
        again = _row_of(run, task, diff, report)
        with database.transaction() as connection:
            AGENT_RUNS.save(connection, [again])
        done.append(Regraded(run, again))
    return done


def _row_of(run: AgentRun, task: ReleasedTask, diff: bytes, report: Mapping[str, Any]) -> AgentRun:
    """Return the row of the second grading; what the agent spent is the first one's."""
    seed = f"{run.run_id} {json.dumps(report, sort_keys=True)}"
    recorded = RecordedRun(
        source=run.source,
        name=run.name,
        sha256=hashlib.sha256(seed.encode()).hexdigest(),
        task=task.id,
        agent=run.agent,
        agent_version=run.agent_version,
        model=run.model,
        settings=run.settings,
        report=GraderReport.model_validate(report),
        diff=diff,
        regrade_of=run.run_id,
    )
    row, _ = rows_of(recorded, task, Redaction({}), datetime.now(UTC))
    return row.model_copy(update={"task": run.task, "contaminated": run.contaminated})
