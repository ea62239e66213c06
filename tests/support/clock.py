"""A clock that waits for nobody."""

from __future__ import annotations

from datetime import UTC, datetime

from formulacode_dagster.running.clock import Clock

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
