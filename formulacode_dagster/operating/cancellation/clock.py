"""Time, as an argument: waits of an hour are tested in a millisecond."""

from __future__ import annotations

import asyncio
import time


class Clock:
    """The machine's clock; a test has its own."""

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)


SYSTEM_CLOCK = Clock()
