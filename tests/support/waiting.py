"""Waiting for what others do, for so long and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")
PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.2


def until(
    ask: Callable[[], Answer], told: Callable[[], object] = lambda: "", *, seconds: float = PATIENCE_SECONDS
) -> Answer:
    """The first true answer; after that many *seconds* the test fails with the message *told*."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"{answer} after {seconds:.0f} s: {told()}"
        time.sleep(_LOOK_SECONDS)
    return answer
