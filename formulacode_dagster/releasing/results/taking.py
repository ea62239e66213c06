"""Reads recorded runs into the database: once each, only those of a release, without secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from formulacode_dagster.models.agent_run import AgentRun, BenchmarkSpeedup, RunState, Trajectory
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS, TRAJECTORIES
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.exports.grader.terminal_reports import NOT_GRADABLE, TOO_SLOW

from .contamination import Cutoffs
from .formats import RecordedRuns, recognize
from .recorded import GraderReport, RecordedRun
from .redaction import Redaction
from .released import ReleasedTask, ReleasedTasks
from .task_facts import facts_of, mark

MOST_DETAIL = 500
NO_REPORT = "no_report"
"""Error of a run that recorded none, and has no report of the grader either."""


@dataclass(frozen=True)
class TakenRuns:
    """Outcome of reading the runs of a folder."""

    taken: tuple[AgentRun, ...]
    before: tuple[AgentRun, ...]
    """Runs that were stored before."""
    refused: tuple[str, ...]
    """Why, for each run that was not taken."""

    @property
    def known(self) -> int:
        """Number of runs that were stored before."""
        return len(self.before)


def take(
    database: Database,
    path: Path,
    tasks: ReleasedTasks,
    redaction: Redaction,
    progress: ProgressReporter,
    cutoffs: Cutoffs | None = None,
) -> TakenRuns:
    """Store the runs in *path* that are of *tasks*, each in a transaction of its own; *progress* names each.

    Raises ConfigurationError if no known program wrote *path*.
    """
    return take_recorded(database, recognize(path), tasks, redaction, progress, cutoffs)


def take_recorded(
    database: Database,
    recorded: RecordedRuns,
    tasks: ReleasedTasks,
    redaction: Redaction,
    progress: ProgressReporter,
    cutoffs: Cutoffs | None = None,
) -> TakenRuns:
    """Store the *recorded* runs, as `take`; *cutoffs* defaults to the package's own table of models."""
    cutoffs = cutoffs or Cutoffs.read()
    taken, before, refused = list[AgentRun](), list[AgentRun](), list[str]()
    for number, folder in enumerate(recorded.folders, start=1):
        progress(f"{number} of {len(recorded.folders)}: {folder.name}")
        try:
            run = recorded.read(folder)
            with database.transaction() as connection:
                if known := _stored(connection, run):
                    before.append(known)
                    continue
                task = tasks.task_of(run)
                row, trajectory = rows_of(run, task, redaction, datetime.now(UTC))
                row = mark(row, facts_of(task.row), cutoffs)
                _store(connection, run, row, trajectory)
        except ItemFailure as failure:
            refused.append(str(failure))
        else:
            taken.append(row)
    return TakenRuns(tuple(taken), tuple(before), tuple(refused))


def _stored(connection: Connection, run: RecordedRun) -> AgentRun | None:
    statement = AGENT_RUNS.select().where(AGENT_RUNS.table.c.run_id == run.sha256)
    row = connection.execute(statement).mappings().first()
    return AGENT_RUNS.from_row(dict(row)) if row is not None else None


def _store(connection: Connection, run: RecordedRun, row: AgentRun, trajectory: tuple[Trajectory, str] | None) -> None:
    AGENT_RUNS.save(connection, [row])
    if run.diff is not None:
        put_blob(connection, "agent_diff", run.diff)
    if trajectory is not None:
        put_blob(connection, "trajectory", trajectory[1].encode())
        TRAJECTORIES.save(connection, [trajectory[0]])


def rows_of(
    run: RecordedRun, task: ReleasedTask, redaction: Redaction, taken_at: datetime
) -> tuple[AgentRun, tuple[Trajectory, str] | None]:
    """Return the row of *run*, which is of *task*, and its trajectory with the text."""
    trajectory = trajectory_of(run, task, redaction) if run.trajectory is not None else None
    report, error = run.report, run.error
    is_graded = report is not None and run.is_valid and report.reason != NOT_GRADABLE
    if not is_graded and not error:
        error = NOT_GRADABLE if report and report.reason == NOT_GRADABLE else NO_REPORT
    told = _judgement(report, task) if report and is_graded else {}
    row = AgentRun(
        month=task.month,
        task_id=task.id,
        run_id=run.sha256,
        release=task.tag,
        source=run.source,
        name=run.name,
        agent=run.agent,
        agent_version=run.agent_version,
        model=run.model,
        settings={name: redaction.without(value) for name, value in run.settings.items()},
        state=RunState.GRADED if is_graded else RunState.INFRASTRUCTURE,
        error=error,
        detail=redaction.without(run.message or (report.detail if report else ""))[:MOST_DETAIL],
        dollars=run.dollars,
        tokens_in=run.tokens_in,
        tokens_cached=run.tokens_cached,
        tokens_out=run.tokens_out,
        turns=_turns(trajectory[1]) if trajectory else None,
        agent_seconds=run.agent_seconds,
        seconds=run.seconds,
        started_at=run.started_at,
        diff_sha256=hashlib.sha256(run.diff).hexdigest() if run.diff is not None else "",
        statement_sha256=task.statement_sha256,
        image_digest=str(task.row["image_digest"]),
        task_sha256=report.task_sha256 if report else "",
        grader_sha256=report.grader_sha256 if report else "",
        regrade_of=run.regrade_of,
        taken_at=taken_at,
        **told,
    )
    return row, trajectory


def _judgement(report: GraderReport, task: ReleasedTask) -> dict[str, Any]:
    """Fields of a graded run that come from the grader."""
    counts = {name: report.metric(name) for name in ("tests", "tests_failed")}
    return {
        "reason": report.reason,
        "reward": report.metric("reward"),
        **{name: report.metric(name) for name in ("speedup", "speedup_low", "speedup_high", "oracle_speedup")},
        **{name: None if value is None else int(value) for name, value in counts.items()},
        "benchmarks": tuple(_speedups(report, task)),
    }


def _speedups(report: GraderReport, task: ReleasedTask) -> Iterable[BenchmarkSpeedup]:
    """Speed-ups by benchmark, as the export for fc-eval reports them: 1 for work rejected for more than its speed."""
    is_right = report.reason == "faster" or report.reason in TOO_SLOW
    row = task.row
    for name, stored in zip(row["benchmarks"], row["benchmark_speedups"], strict=True):
        measured = report.benchmarks.get(name)
        yield BenchmarkSpeedup(
            benchmark=name,
            speedup=measured.speedup if measured and is_right else 1.0,
            oracle_speedup=measured.oracle_speedup if measured else stored,
        )


def trajectory_of(run: RecordedRun, task: ReleasedTask, redaction: Redaction) -> tuple[Trajectory, str]:
    """Return the trajectory of *run* and its text, without secrets; text that is no ATIF has no steps."""
    text, redacted = redaction.of((run.trajectory or b"").decode(errors="replace"))
    document = _atif(text)
    row = Trajectory(
        month=task.month,
        run_id=run.sha256,
        task_id=task.id,
        format=str(document.get("schema_version", "")),
        steps=len(document.get("steps", [])),
        bytes=len(text.encode()),
        redacted=redacted,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
    return row, text


def _turns(text: str) -> int:
    return sum(1 for step in _atif(text).get("steps", []) if isinstance(step, dict) and step.get("source") == "agent")


def _atif(text: str) -> dict[str, Any]:
    """Return *text* as an ATIF document; empty for anything else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    is_atif = isinstance(document, dict) and str(document.get("schema_version", "")).startswith("ATIF-")
    return document if is_atif and isinstance(document.get("steps"), list) else {}
