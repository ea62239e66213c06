"""How a function of a repository is named, by whoever executes it and by whoever changes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CodeLocation:
    """A function, the way a code object names it: file below the repository, first line (its decorators' included)."""

    path: str
    line: int
