"""Is every outside system reachable, and with which rights? Each probe says what it found and what to do about it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError


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


def probe(system: str, ask: Callable[[], tuple[bool, str]]) -> Finding:
    """What *ask* says of *system*, a warning where it is not well; a FormulaCodeError is a finding, not a crash."""
    try:
        healthy, text = ask()
    except FormulaCodeError as error:
        return Finding(system, Health.BROKEN, str(error))
    return Finding(system, Health.OK if healthy else Health.WARNING, text)


def programs() -> tuple[bool, str]:
    """The programs the platform calls; raises ConfigurationError when one is missing."""
    missing = [name for name in ("git", "cc", "make") if shutil.which(name) is None]
    if missing:
        what = f"{', '.join(missing)} not found on PATH"
        raise ConfigurationError(what, remedy="Install it with the system's package manager")
    return True, "git, cc and make are on PATH"
