"""Which way is better: of asv's kinds of benchmarks nearly all count what one would rather have less of."""

from __future__ import annotations

import re
from enum import StrEnum


class Direction(StrEnum):
    """What a step means to whoever uses the code; the words are asv's."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    UNKNOWN = "unknown"


_LESS_IS_BETTER = frozenset({"time", "timeraw", "memory", "peakmemory"})
_LESS_UNITS = re.compile(r"[num\u00b5]?s|secs?|seconds?|minutes?|hours?|[kmgt]?i?b|([kmg]|kilo|mega|giga)?bytes?", re.I)
_MORE_UNITS = re.compile(r".+(?:/| per )\s*(?:s|sec|seconds?)|[kmgt]?bps|hz|[kmgt]?flops|fps", re.I)


def less_is_better(kind: str, unit: str) -> bool | None:
    """Whether less is better of a benchmark of this *kind* (asv's `type`) and *unit*; None where nothing tells.

    What a `track_` benchmark counts is the author's affair: its unit tells when it is one of time, size or rate.
    """
    if kind in _LESS_IS_BETTER:
        return True
    if _LESS_UNITS.fullmatch(unit.strip()):
        return True
    return False if _MORE_UNITS.fullmatch(unit.strip()) else None


def direction(kind: str, unit: str, difference: float) -> Direction:
    """What a step by *difference* means for a benchmark of this *kind* and *unit*."""
    less = less_is_better(kind, unit)
    if less is None or difference == 0:
        return Direction.UNKNOWN
    return Direction.IMPROVEMENT if (difference < 0) is less else Direction.REGRESSION
