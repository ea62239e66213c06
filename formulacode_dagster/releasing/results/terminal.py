"""Outputs of fc-eval 0.1 and terminal-bench 0.2, whose agents are graded in their own container."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.models.agent_run import RunSource
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .recorded import ForeignDocument, RecordedRun, content_hash, read_report, require_inside, seconds_between

RESULTS, METADATA = "results.json", "run_metadata.json"
REPORT = "sessions/verifier/report.json"
COUNTED_FAILURES = frozenset(
    {"none", "unset", "agent_timeout", "context_length_exceeded", "output_length_exceeded", "fatal_llm_parse_error"}
)
"""Failure modes in which the agent had its chance; a run with another one counts nowhere."""


class _Trial(ForeignDocument):
    """`results.json` of a trial."""

    trial_name: str
    task_id: str
    failure_mode: str = "unset"
    parser_extra_metrics: dict[str, Any] | None = None
    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    total_cost: float | None = None
    trial_started_at: datetime | None = None
    trial_ended_at: datetime | None = None
    agent_started_at: datetime | None = None
    agent_ended_at: datetime | None = None


class _RunMetadata(ForeignDocument):
    agent_name: str
    model_name: str | None = None


def trials_in(folder: Path) -> list[Path]:
    """Return the folders of trials in *folder*, the output of one run: `<task>/<trial>/results.json`."""
    if not (folder / METADATA).is_file():
        return []
    return [file.parent for file in sorted(folder.glob(f"*/*/{RESULTS}"))]


def read_trial(folder: Path) -> RecordedRun:
    """Return the trial in *folder*.

    Raises ItemFailure: `unreadable` if a file of it is broken or leads out of it, `mismatch` if several agents shared
    its container, since only the last one's report is there.
    """
    require_inside(folder, RESULTS, REPORT)
    require_inside(folder.parent.parent, METADATA)
    trial, run = _Trial.read(folder / RESULTS), _RunMetadata.read(folder.parent.parent / METADATA)
    metrics = trial.parser_extra_metrics
    if len((metrics or {}).get("agent_metrics_by_agent") or {}) > 1:
        raise ItemFailure(
            FailureKind.MISMATCH,
            f"several agents shared the container of {trial.trial_name}",
            why="each starts from the work of the one before, and only the last one's report is kept",
            remedy="Run one agent at a time",
        )
    failed = trial.failure_mode not in COUNTED_FAILURES
    return RecordedRun(
        source=RunSource.FC_EVAL if "parser_extra_metrics" in trial.model_fields_set else RunSource.TERMINAL_BENCH,
        name=trial.trial_name,
        sha256=content_hash(folder / name for name in (RESULTS, REPORT)),
        task=trial.task_id,
        agent=run.agent_name,
        model=run.model_name or "",
        report=read_report(folder / REPORT),
        is_valid=not failed,
        error=trial.failure_mode if failed or trial.failure_mode not in {"none", "unset"} else "",
        dollars=trial.total_cost,
        tokens_in=trial.total_input_tokens,
        tokens_out=trial.total_output_tokens,
        started_at=trial.trial_started_at,
        agent_seconds=seconds_between(trial.agent_started_at, trial.agent_ended_at),
        seconds=seconds_between(trial.trial_started_at, trial.trial_ended_at),
    )
