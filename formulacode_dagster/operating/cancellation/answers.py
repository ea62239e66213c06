"""When outside systems last answered this process: it tells one that is down from one that lacks something."""

from __future__ import annotations

import time

_last: dict[str, float] = {}


def note_answer(system: str) -> None:
    """Remember that *system* gave just now what it was asked for: itself, and not a cache in its place."""
    _last[system] = time.monotonic()


def has_answered_since(system: str, moment: float) -> bool:
    """Whether *system* gave anything after *moment*, by the monotonic clock."""
    return _last.get(system, float("-inf")) > moment
