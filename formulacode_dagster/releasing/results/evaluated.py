"""Runs that `fc-data evaluate --keep` left: who worked, the changes, the grader's report."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from formulacode_dagster.models.agent_run import RunSource
from formulacode_dagster.models.base import first_fault
from formulacode_dagster.releasing.exports.evaluate import DIFF_FILE, REPORT_FILE, RUN_FILE, KeptRun

from .recorded import (
    RecordedRun,
    content_hash,
    read_bytes,
    read_of_agent,
    read_report,
    require_inside,
    seconds_between,
    unreadable,
)


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of runs in *folder*, a run or a folder of runs, at most two levels deep."""
    found = [folder / RUN_FILE, *sorted(folder.glob(f"*/{RUN_FILE}")), *sorted(folder.glob(f"*/*/{RUN_FILE}"))]
    return [each.parent for each in found if each.is_file()]


def read_run(folder: Path) -> RecordedRun:
    """Return the run in *folder*; raises ItemFailure (`unreadable`) if a file of it is broken or leads out of it."""
    require_inside(folder, RUN_FILE, REPORT_FILE, DIFF_FILE)
    try:
        kept = KeptRun.model_validate_json(read_bytes(folder / RUN_FILE))
    except ValidationError as error:
        raise unreadable(folder / RUN_FILE, first_fault(error)) from error
    return RecordedRun(
        source=RunSource.EVALUATE,
        name=folder.name,
        sha256=content_hash(folder / name for name in (RUN_FILE, REPORT_FILE, DIFF_FILE)),
        task=kept.task,
        agent=kept.agent,
        report=read_report(folder / REPORT_FILE),
        error=kept.error,
        message=kept.message,
        started_at=kept.started_at,
        agent_seconds=seconds_between(kept.started_at, kept.agent_ended_at),
        seconds=seconds_between(kept.started_at, kept.finished_at),
        diff=read_of_agent(folder / DIFF_FILE),
    )
