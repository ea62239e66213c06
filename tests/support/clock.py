"""A clock that never waits, and a bound on work that no busy machine can break."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from formulacode_dagster.operating.cancellation.clock import Clock

NOW = datetime(2026, 3, 1, tzinfo=UTC).timestamp()


class FakeClock(Clock):
    """Time that passes only by being slept away."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@contextmanager
def at_most_cpu(seconds: float) -> Iterator[None]:
    """Fail when the block takes more of this process's own time; how long others had the core counts for nothing."""
    begun = time.process_time()
    yield
    spent = time.process_time() - begun
    assert spent < seconds, f"took {spent:.1f} s of CPU time"
