"""A run as a harness recorded it, before it is compared with a release."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from formulacode_dagster.models.agent_run import RunSource
from formulacode_dagster.models.base import first_fault
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.files.regular_files import leads_out

MOST_BYTES = 200_000_000
"""Larger files of a run are hashed, and not read."""
D = TypeVar("D", bound="ForeignDocument")


class ForeignDocument(BaseModel):
    """The part of another program's file that is read here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def read(cls: type[D], file: Path) -> D:
        """Return the content of *file*; raises ItemFailure (`unreadable`) for anything else than such a document."""
        try:
            return cls.model_validate_json(read_bytes(file))
        except ValidationError as error:
            raise unreadable(file, first_fault(error)) from error


class ReportedSpeedups(ForeignDocument):
    """Speed-ups of one benchmark in the grader's report."""

    speedup: float
    oracle_speedup: float


class GraderReport(ForeignDocument):
    """`report.json` of the grader."""

    task: str
    task_sha256: str = ""
    grader_sha256: str = ""
    reason: str
    detail: str = ""
    metrics: dict[str, float]
    benchmarks: dict[str, ReportedSpeedups] = {}

    def metric(self, name: str) -> float | None:
        """Return a finite metric, None without one."""
        value = self.metrics.get(name)
        return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class RecordedRun:
    """A run of an agent, whatever program ran it."""

    source: RunSource
    name: str
    sha256: str
    """Hash over the files that say what happened."""
    task: str
    """Name of the task: its id, or the folder's that the harness had."""
    agent: str
    agent_version: str = ""
    model: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    report: GraderReport | None = None
    export_digest: str = ""
    """Harbor's hash of the task's folder; empty if none is recorded."""
    is_valid: bool = True
    """True if the program considers the reward one that counts."""
    error: str = ""
    message: str = ""
    dollars: float | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    started_at: datetime | None = None
    agent_seconds: float | None = None
    seconds: float | None = None
    diff: bytes | None = None
    """The agent's changes; None if there are none, or they are larger than `MOST_BYTES`: no grader takes those."""
    trajectory: bytes | None = None
    regrade_of: str = ""


def require_inside(folder: Path, *names: str) -> None:
    """Raise ItemFailure (`unreadable`) if a link takes one of these files out of *folder*: an agent can leave one."""
    for name in names:
        if leads_out(folder / name, folder):
            raise unreadable(folder / name, "it leads out of the run")


def read_bytes(file: Path) -> bytes:
    """Return the content of *file*; raises ItemFailure (`unreadable`) if that cannot be had."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise unreadable(file, f"it is larger than {MOST_BYTES // 1_000_000} MB")
        return file.read_bytes()
    except OSError as error:
        raise unreadable(file, error.strerror or str(error)) from error


def read_of_agent(file: Path) -> bytes | None:
    """Return the content of *file*, None if there is no such file or it is too large; raises as `read_bytes`.

    An agent must not undo its grading by the size of a file.
    """
    return read_bytes(file) if file.is_file() and file.stat().st_size <= MOST_BYTES else None


def read_report(file: Path) -> GraderReport | None:
    """Return the grader's report, None if there is no such file; raises ItemFailure (`unreadable`) for another file."""
    return GraderReport.read(file) if file.is_file() else None


def content_hash(files: Iterable[Path]) -> str:
    """Return the hash over the contents of *files*, in this order; a missing one counts as empty.

    Raises ItemFailure (`unreadable`) if one cannot be read.
    """
    whole = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") if file.is_file() else io.BytesIO() as content:
                whole.update(hashlib.file_digest(content, "sha256").digest())
        except OSError as error:
            raise unreadable(file, error.strerror or str(error)) from error
    return whole.hexdigest()


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds from *start* to *end*; None if either is unknown."""
    return None if start is None or end is None else (end - start).total_seconds()


def text_settings(settings: dict[str, Any]) -> dict[str, str]:
    """Return *settings* as texts, without those that are null."""
    known = {name: value for name, value in settings.items() if value is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in known.items()}


def unreadable(file: Path, why: str) -> ItemFailure:
    """Return the error of a file that is not what it should be."""
    return ItemFailure(
        FailureKind.UNREADABLE, f"{file} cannot be read", why=why, remedy="Take the results as the harness wrote them"
    )
