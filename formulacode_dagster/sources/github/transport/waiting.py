"""Visible waiting: reported with the remaining time, and recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulacode_dagster.operating.cancellation.clock import Clock

from .accounting import Ledger
from .answers import Resource

OnWait = Callable[[str, float], None]
"""Hears why something waits, and for how many seconds more."""

SHOWN_SECONDS = 1.0
"""A shorter wait is not worth telling anybody."""
STEP_SECONDS = 60.0
"""Interval of reports during a longer wait."""


@dataclass(frozen=True)
class Waits:
    """Sleeps for a client."""

    clock: Clock
    ledger: Ledger
    on_wait: OnWait

    async def step(self, resource: Resource, reason: str, seconds: float) -> float:
        """Wait *seconds*, or the first minute of them; returns the rest."""
        if seconds >= SHOWN_SECONDS:
            self.on_wait(reason, seconds)
        step = max(0.0, min(seconds, STEP_SECONDS))
        for tally in self.ledger.tallies(resource):
            tally.waited_seconds += step
        await self.clock.sleep(step)
        return seconds - step

    async def whole(self, resource: Resource, reason: str, seconds: float) -> None:
        """Wait *seconds*."""
        left = await self.step(resource, reason, seconds)
        while left > 0:
            left = await self.step(resource, reason, left)
