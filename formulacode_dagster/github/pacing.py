"""Staying below GitHub's documented ceilings, so that a secondary limit is never met.

Secondary limits punish bursts, not volume: permits are therefore spaced out evenly after a small burst.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from .answers import Resource
from .clock import Clock

MINUTE = 60.0
SHOWN_SECONDS = 1.0
"""A shorter wait is not worth telling anybody."""


@dataclass(frozen=True)
class Pacing:
    """Ceilings of ours, per minute; GitHub's are 900, 2,000, 30 and 10, and 100 requests at once."""

    concurrent: int = 50
    rest_points: int = 800
    graphql_points: int = 1_800
    searches: int = 27
    code_searches: int = 9

    def per_minute(self, resource: Resource) -> int:
        """Permits a minute for *resource*."""
        return {
            Resource.CORE: self.rest_points,
            Resource.GRAPHQL: self.graphql_points,
            Resource.SEARCH: self.searches,
            Resource.CODE_SEARCH: self.code_searches,
        }[resource]


class Pacer:
    """Hands out permits: at most `concurrent` at once, at most a burst ahead of an even spread over the minute."""

    def __init__(self, pacing: Pacing, clock: Clock, on_wait: Callable[[str, float], None]) -> None:
        self._pacing = pacing
        self._clock = clock
        self._on_wait = on_wait
        self._slots = asyncio.Semaphore(pacing.concurrent)
        self._due: dict[Resource, float] = {}

    @asynccontextmanager
    async def permit(self, resource: Resource) -> AsyncIterator[None]:
        """Hold one of the concurrent slots, entered when the rate allows."""
        async with self._slots:
            await self._turn(resource)
            yield

    async def _turn(self, resource: Resource) -> None:
        limit = self._pacing.per_minute(resource)
        spacing = MINUTE / limit
        # A tenth of a minute's permits may go at once: minute + burst stays below the documented ceiling.
        tolerance = spacing * max(1, limit // 10)
        now = self._clock.time()
        due = max(self._due.get(resource, 0.0), now)
        self._due[resource] = due + spacing
        wait = due - now - tolerance
        if wait > 0:
            if wait >= SHOWN_SECONDS:
                self._on_wait(f"pacing of {resource} requests", wait)
            await self._clock.sleep(wait)
