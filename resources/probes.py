"""Probes of outside systems: each reports reachability, permissions, and a remedy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError


class Health(StrEnum):
    """Result of a probe."""

    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True)
class ProbeResult:
    """One outside system."""

    system: str
    health: Health
    text: str


def probe(system: str, ask: Callable[[], tuple[bool, str]]) -> ProbeResult:
    """Return the finding of *ask* on *system*, a warning if it is unhealthy; a FormulaCodeError is a finding, not a
    crash.
    """
    try:
        healthy, text = ask()
    except FormulaCodeError as error:
        return ProbeResult(system, Health.BROKEN, str(error))
    return ProbeResult(system, Health.OK if healthy else Health.WARNING, text)


def programs() -> tuple[bool, str]:
    """The programs the platform calls; raises ConfigurationError when one is missing."""
    missing = [name for name in ("git", "cc", "make") if shutil.which(name) is None]
    if missing:
        what = f"{', '.join(missing)} not found on PATH"
        raise ConfigurationError(what, remedy="Install it with the system's package manager")
    return True, "git, cc and make are on PATH"
