"""Leave to send one request: a token with something left, a free slot, and a turn that the pace allows."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.cancellation.clock import Clock

from .answers import Resource
from .limit_store import LimitStore
from .pacing import QUERY_SECONDS, Pacing
from .rate_limits import RateLimits
from .tokens import Lease, NoOtherTokenError, Pause, TokenPool
from .waiting import Waits

SLOT_SECONDS = 0.05
"""Seconds between checks whether another process released a slot."""


class Permit:
    """Held while a request is in flight; the limits in its answer are stored when it is released."""

    def __init__(
        self, lease: Lease, resource: Resource, pool: TokenPool, pacing: Pacing, asked_at: float, expected: float
    ) -> None:
        self.lease = lease
        self.resource = resource
        self.asked_at = asked_at
        self._pool = pool
        self._pacing = pacing
        self._expected = expected
        self._learnt: list[Callable[[RateLimits, float], None]] = []

    def learn(self, resource: Resource, *, remaining: int, limit: int | None, seconds: float) -> None:
        """Return the headers' information: what is left of *resource*, which is reset in this many *seconds*."""
        self._learnt.append(
            lambda limits, now: self._pool.learn(
                limits, self.lease, resource, remaining=remaining, limit=limit, reset=now + seconds
            )
        )

    def exhaust(self, seconds: float) -> None:
        """The primary limit is used up for *seconds* more."""
        self._learnt.append(
            lambda limits, now: self._pool.exhaust(limits, self.lease, self.resource, until=now + seconds)
        )

    def block(self, seconds: float) -> None:
        """A secondary limit: a pause of *seconds*, and half the pace after it."""

        def refused(limits: RateLimits, now: float) -> None:
            self._pool.block(limits, self.lease, until=now + seconds)
            limits.pace.slow_down(now, asked_at=self.asked_at)

        self._learnt.append(refused)

    def overrun(self) -> None:
        """GitHub had no time for the answer: half the pace from now on."""
        self._learnt.append(lambda limits, now: limits.pace.slow_down(now, asked_at=self.asked_at))

    def settle(self, limits: RateLimits, holder: str, now: float) -> None:
        """Release the slot, and store what the answer said, and how long it took."""
        seconds = min(max(0.0, now - self.asked_at), QUERY_SECONDS)
        limits.pace.answered(self.resource, self._pacing, now, seconds=seconds, expected=self._expected)
        limits.under_way[holder] = limits.under_way.get(holder, 0) - 1
        if limits.under_way[holder] <= 0:
            del limits.under_way[holder]
        for learn in self._learnt:
            learn(limits, now)


class Permits:
    """Grants permits in order within this client, so that a killed process leaves no queue behind."""

    def __init__(self, pool: TokenPool, pacing: Pacing, store: LimitStore, clock: Clock, waits: Waits) -> None:
        self._pool = pool
        self._pacing = pacing
        self._store = store
        self._clock = clock
        self._waits = waits
        self._slots = asyncio.Semaphore(pacing.concurrent)
        self._queues: defaultdict[Resource, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def hold(self, resource: Resource, *, without: Collection[int] = ()) -> AsyncIterator[Permit]:
        """A permit for one request, when everything allows it; see `TokenPool.choose` for *without*.

        Raises NoOtherTokenError and ConfigurationError as it does.
        """
        async with AsyncExitStack() as held:
            # only the head of a queue takes a slot, so an exhausted resource does not block the others
            async with self._queues[resource]:
                await held.enter_async_context(self._slots)
                permit = await self._granted(resource, without)
            try:
                yield permit
            finally:
                await asyncio.shield(self._settle(permit))

    async def _granted(self, resource: Resource, without: Collection[int]) -> Permit:
        while True:
            asking = asyncio.ensure_future(self._store.update(lambda limits: self._ask(limits, resource, without)))
            try:
                answer = await asyncio.shield(asking)
            except asyncio.CancelledError:
                # permits granted meanwhile will not be used
                with suppress(ConfigurationError, NoOtherTokenError):
                    unused = await asking
                    if isinstance(unused, Permit):
                        await self._settle(unused)
                raise
            if isinstance(answer, Permit):
                return answer
            await self._waits.step(resource, answer.reason, answer.seconds)

    async def _settle(self, permit: Permit) -> None:
        await self._store.update(lambda limits: permit.settle(limits, self._store.holder, self._clock.time()))

    def _ask(self, limits: RateLimits, resource: Resource, without: Collection[int]) -> Permit | Pause:
        now = self._clock.time()
        chosen = self._pool.choose(limits, resource, now, without=without)
        if isinstance(chosen, Pause):
            return chosen
        if sum(limits.under_way.values()) >= limits.pace.slots(self._pacing, now):
            return Pause("the limit of concurrent GitHub requests is reached", SLOT_SECONDS)
        wait = limits.pace.wait(resource, self._pacing, now)
        if wait > 0:
            return Pause(f"pacing of {resource} requests", wait)
        expected = limits.pace.take(resource, self._pacing, now)
        self._pool.spend(limits, chosen, resource, now)
        limits.under_way[self._store.holder] = limits.under_way.get(self._store.holder, 0) + 1
        return Permit(chosen, resource, self._pool, self._pacing, now, expected)
