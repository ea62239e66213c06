"""Direction of a step: for nearly all of asv's benchmark kinds, less is better."""

from __future__ import annotations

import re
from enum import StrEnum


class Direction(StrEnum):
    """Meaning of a step for users of the code, in asv's words."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    UNKNOWN = "unknown"


_LESS_IS_BETTER = frozenset({"time", "timeraw", "memory", "peakmemory"})
_LESS_UNITS = re.compile(r"[num\u00b5]?s|secs?|seconds?|minutes?|hours?|[kmgt]?i?b|([kmg]|kilo|mega|giga)?bytes?", re.I)
_MORE_UNITS = re.compile(r".+(?:/| per )\s*(?:s|sec|seconds?)|[kmgt]?bps|hz|[kmgt]?flops|fps", re.I)


def less_is_better(kind: str, unit: str) -> bool | None:
    """Return True if less is better for a benchmark of this *kind* (asv's `type`) and *unit*; None if unknown.

    A `track_` benchmark counts whatever its author chose: its unit shows whether it is a time, size or rate.
    """
    if kind in _LESS_IS_BETTER:
        return True
    if _LESS_UNITS.fullmatch(unit.strip()):
        return True
    return False if _MORE_UNITS.fullmatch(unit.strip()) else None


def direction(kind: str, unit: str, difference: float) -> Direction:
    """Return the meaning of a step by *difference* for a benchmark of this *kind* and *unit*."""
    less = less_is_better(kind, unit)
    if less is None or difference == 0:
        return Direction.UNKNOWN
    return Direction.IMPROVEMENT if (difference < 0) is less else Direction.REGRESSION
