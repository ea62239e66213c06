"""Is every outside system reachable, and with which rights? Each probe says what it found and what to do about it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from formulacode_dagster.models.errors import FormulaCodeError


class Health(StrEnum):
    """What a probe found."""

    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """One outside system."""

    system: str
    health: Health
    text: str


def probe(system: str, ask: Callable[[], tuple[Health, str]]) -> Finding:
    """Run one probe; a FormulaCodeError is a finding, not a crash."""
    try:
        health, text = ask()
    except FormulaCodeError as error:
        return Finding(system, Health.BROKEN, str(error))
    return Finding(system, health, text)


def programs() -> tuple[Health, str]:
    """The programs the platform calls."""
    missing = [name for name in ("git", "cc", "make") if shutil.which(name) is None]
    if missing:
        return Health.BROKEN, f"{', '.join(missing)} not found on PATH; install it with the system's package manager"
    return Health.OK, "git, cc and make are on PATH"
