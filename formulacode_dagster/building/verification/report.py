"""The verdict on a task folder, as a file in it: `verification_success.json` or `failure.json`, never both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from formulacode_dagster.building.planning.uv_messages import scrub
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import Verification
from formulacode_dagster.operating.files.atomic import replacing

from .scan import Secret
from .verifications import VERIFICATION_NAMES

SUCCESS = "verification_success.json"
FAILURE = "failure.json"


class State(StrEnum):
    """Result of a verification."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_REACHED = "not_reached"


class VerificationReport(Frozen):
    """One verification."""

    name: str
    state: State
    rc: int | None = Field(default=None, description="exit code of the command behind it, where there is one")
    seconds: float = 0.0
    detail: str = ""
    log_tail: str = ""


class Report(Frozen):
    """Content written into the folder."""

    task: str
    base_commit: str
    image: str
    image_digest: str
    started_at: datetime
    seconds: float
    ok: bool
    error: str = Field(default="", description="why verification stopped")
    gates: tuple[VerificationReport, ...]
    benchmarks: tuple[str, ...] = ()


def verification_reports(made: Sequence[Verification]) -> tuple[VerificationReport, ...]:
    """Every verification in its order, those that were not reached included."""
    by_name = {verification.name: verification for verification in made}
    return tuple(_verification_report(name, by_name.get(name)) for name in VERIFICATION_NAMES)


def write_report(folder: Path, report: Report, secrets: Iterable[Secret]) -> Path:
    """Write *report* into *folder* in one piece, and remove the other file; no value of *secrets* gets in.

    Raises OutsideSystemError (`disk`) when the folder cannot be written.
    """
    name, other = (SUCCESS, FAILURE) if report.ok else (FAILURE, SUCCESS)
    text = scrub(report.model_dump_json(indent=2))
    for secret in secrets:
        text = text.replace(secret.value.decode(errors="replace"), f"[{secret.name}]")
    try:
        # the folder is somebody else's: a link of that name is replaced, not followed
        with replacing(folder / name) as partial:
            partial.write_text(text + "\n", encoding="utf-8")
            (folder / other).unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise OutsideSystemError("disk", f"cannot write {folder / name}", why=why, remedy="Make it writable") from error
    return folder / name


def _verification_report(name: str, made: Verification | None) -> VerificationReport:
    if made is None:
        return VerificationReport(name=name, state=State.NOT_REACHED)
    state = State.PASSED if made.ok else State.FAILED
    facts = made.model_dump(include={"rc", "seconds", "detail", "log_tail"})
    return VerificationReport(name=name, state=state, **facts)
