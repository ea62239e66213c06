"""Times of the last answer of each outside system, to tell an outage from a missing resource."""

from __future__ import annotations

import time

_last: dict[str, float] = {}


def note_answer(system: str) -> None:
    """Record that *system* has just answered a request itself, not a cache."""
    _last[system] = time.monotonic()


def has_answered_since(system: str, moment: float) -> bool:
    """Return True if *system* has answered after *moment*, by the monotonic clock."""
    return _last.get(system, float("-inf")) > moment
