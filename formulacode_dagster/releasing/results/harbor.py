"""Jobs of Harbor 0.26: trials with their results, grader's reports, trajectories and artifacts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import Field

from formulacode_dagster.models.agent_run import RunSource

from .recorded import (
    ForeignDocument,
    RecordedRun,
    content_hash,
    read_of_agent,
    read_report,
    require_inside,
    seconds_between,
    text_settings,
)

RESULT, LOCK = "result.json", "lock.json"
REPORT, DIFF, TRAJECTORY = "verifier/report.json", "artifacts/agent.diff", "agent/trajectory.json"


class _Model(ForeignDocument):
    name: str
    provider: str | None = None


class _AgentInfo(ForeignDocument):
    name: str
    version: str = ""
    model_info: _Model | None = None


class _AgentResult(ForeignDocument):
    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None


class _Exception(ForeignDocument):
    exception_type: str
    exception_message: str = ""


class _Timing(ForeignDocument):
    started_at: datetime | None = None
    finished_at: datetime | None = None


class _SourceTrial(ForeignDocument):
    path: str | None = None
    trial_id: str | None = None


class _Config(ForeignDocument):
    agent: dict[str, Any] = Field(default_factory=dict)
    source_trial: _SourceTrial | None = None


class _Trial(ForeignDocument):
    """`result.json` of a trial; that of a job has no trial's name."""

    task_name: str
    trial_name: str
    config: _Config
    agent_info: _AgentInfo
    agent_result: _AgentResult | None = None
    exception_info: _Exception | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    agent_execution: _Timing | None = None
    reward_valid: bool = True


class _LockedTask(ForeignDocument):
    digest: str = ""


class _Lock(ForeignDocument):
    task: _LockedTask = _LockedTask()


def trials_in(folder: Path) -> list[Path]:
    """Return the folders of trials in *folder*, a trial, a job or a folder of jobs."""
    results = [folder / RESULT, *sorted(folder.glob(f"*/{RESULT}")), *sorted(folder.glob(f"*/*/{RESULT}"))]
    return [each.parent for each in results if each.is_file() and b'"trial_name"' in each.read_bytes()]


def read_trial(folder: Path) -> RecordedRun:
    """Return the trial in *folder*; raises ItemFailure (`unreadable`) if a file of it is broken or leads out of it."""
    require_inside(folder, RESULT, LOCK, REPORT, DIFF, TRAJECTORY)
    trial = _Trial.read(folder / RESULT)
    lock = _Lock.read(folder / LOCK) if (folder / LOCK).is_file() else _Lock()
    info, used, error = trial.agent_info, trial.agent_result or _AgentResult(), trial.exception_info
    timing, model, source = trial.agent_execution or _Timing(), info.model_info, trial.config.source_trial
    return RecordedRun(
        source=RunSource.HARBOR,
        name=trial.trial_name,
        sha256=content_hash(folder / name for name in (RESULT, REPORT, DIFF)),
        task=trial.task_name.rpartition("/")[2],
        agent=info.name,
        agent_version=info.version,
        model="/".join(part for part in (model.provider, model.name) if part) if model else "",
        settings=text_settings(trial.config.agent.get("kwargs") or {}),
        report=read_report(folder / REPORT),
        export_digest=lock.task.digest.removeprefix("sha256:"),
        is_valid=trial.reward_valid,
        error=error.exception_type if error else "",
        message=error.exception_message if error else "",
        dollars=used.cost_usd,
        tokens_in=used.n_input_tokens,
        tokens_cached=used.n_cache_tokens,
        tokens_out=used.n_output_tokens,
        started_at=trial.started_at,
        agent_seconds=seconds_between(timing.started_at, timing.finished_at),
        seconds=seconds_between(trial.started_at, trial.finished_at),
        diff=read_of_agent(folder / DIFF),
        trajectory=read_of_agent(folder / TRAJECTORY),
        regrade_of=Path(source.path).name if source and source.path else (source.trial_id or "") if source else "",
    )


def export_digest(files: Mapping[str, bytes]) -> str:
    """Return Harbor's hash of a task's folder with these *files*, as `lock.json` of a trial has it."""
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(f"{path}\0{hashlib.sha256(files[path]).hexdigest()}\n".encode())
    return whole.hexdigest()
