"""Queues of items: this run's own list, or the claims of all runs that share the stage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Generic, Protocol

from formulacode_dagster.models.errors import FormulaCodeError

from . import claims
from .work import RunRole, Sharing, StageRun, T, WorkItem

RENEWALS_A_LEASE = 3


class ItemQueue(Protocol[T]):
    """Batches of items, each taken by one run."""

    @property
    def is_over(self) -> bool:
        """True if nothing more will come."""
        ...

    @property
    def look_again_in(self) -> float | None:
        """Seconds until `take` may return items it does not return now; None if that depends on this run."""
        ...

    async def take(self) -> Sequence[WorkItem[T]]:
        """Return the next batch; empty if there is none now."""
        ...


class OwnQueue(Generic[T]):
    """The items of a run without helpers, in batches."""

    def __init__(self, items: Sequence[WorkItem[T]], size: int) -> None:
        self._batches = [items[at : at + size] for at in range(0, len(items), size)][::-1]
        self.look_again_in: float | None = None

    @property
    def is_over(self) -> bool:
        """True if all are taken."""
        return not self._batches

    async def take(self) -> Sequence[WorkItem[T]]:
        """The next batch."""
        return self._batches.pop() if self._batches else ()


class SharedQueue(Generic[T]):
    """Items of a stage that several runs share, claimed one at a time."""

    def __init__(self, run: StageRun, sharing: Sharing, items: Sequence[WorkItem[T]]) -> None:
        """Create a queue of *items*, which this run could process; claimed items outside it are left to others."""
        self._run, self._sharing = run, sharing
        self._items = {item.name: item for item in items}
        self._elsewhere = {item.name for item in items if not item.is_here}
        self._not_ours: set[str] = set()
        self._neighbours = ""
        self._look_at = 0.0
        self._deserted_since: float | None = None
        self.is_over = False

    @property
    def look_again_in(self) -> float | None:
        """Seconds until `take` asks the database again."""
        return None if self.is_over else max(0.0, self._look_at - time.monotonic())

    async def take(self) -> Sequence[WorkItem[T]]:
        """Claim the next item; whoever leads the stage or joined it comes to its end when all are finished."""
        if self.is_over or time.monotonic() < self._look_at:
            return ()
        item = await asyncio.to_thread(self._claim)
        if item is not None:
            self._neighbours = item.neighbours
            return (item,)
        self._look_at = time.monotonic() + self._sharing.look_again_seconds
        return ()

    def _claim(self) -> WorkItem[T] | None:
        worker = self._sharing.worker
        with self._run.database.transaction() as connection:
            while turn := claims.claim(
                connection, worker, neighbours=self._neighbours, without=self._not_ours | self._elsewhere
            ):
                item = self._items.get(turn.item)
                # the present leader's inputs win over those of an earlier leader
                if item is not None and (item.inputs == turn.inputs or self._sharing.part is RunRole.LEADS):
                    return item
                # of another version of the code, or of a month that has changed since
                claims.release(connection, worker, [turn.item])
                self._not_ours.add(turn.item)
            others = claims.others(connection, worker, without=self._not_ours)
        self.is_over = self._sharing.part is RunRole.HELPS or others.left == 0
        self._take_what_nobody_comes_for(others)
        return None

    def _take_what_nobody_comes_for(self, others: claims.Others) -> None:
        """Finally try items whose images are elsewhere: they fail by name, and no run waits for them."""
        now = time.monotonic()
        if others.attended:
            self._deserted_since = None
        elif self._deserted_since is None:
            self._deserted_since = now
        elif now - self._deserted_since >= self._sharing.worker.lease.total_seconds():
            self._elsewhere.clear()


@asynccontextmanager
async def queue_of(
    run: StageRun, items: Sequence[WorkItem[T]], pending: Sequence[WorkItem[T]], size: int
) -> AsyncIterator[ItemQueue[T]]:
    """Yield the queue from which *run* takes its work, in batches of *size* if it has no helpers.

    The leader of a shared stage opens it with the *pending* items; others take any of *items* that is still open. At
    the end, in every case, claims are released, and the leader stops sharing the stage.
    """
    sharing = run.sharing
    if sharing is None:
        yield OwnQueue(pending, size)
        return
    leads = sharing.part is RunRole.LEADS
    if leads:
        await asyncio.to_thread(_open, run, sharing, pending)
    renewal = asyncio.create_task(_renew(run, sharing))
    try:
        yield SharedQueue(run, sharing, pending if leads else items)
    finally:
        renewal.cancel()
        with suppress(FormulaCodeError), run.database.transaction() as connection:
            if leads:
                claims.close_stage(connection, sharing.worker, run.run_id)
            else:
                claims.release(connection, sharing.worker)
        if renewal.done() and not renewal.cancelled():
            # it ends by itself only after an unexpected error
            renewal.result()


def _open(run: StageRun, sharing: Sharing, pending: Sequence[WorkItem[T]]) -> None:
    with run.database.transaction() as connection:
        seconds = claims.expected_seconds(connection, run.stage)
        usual = sum(seconds.values()) / len(seconds) if seconds else 0.0
        claimable = [
            claims.ClaimableItem(item.name, item.inputs, item.neighbours, seconds.get(item.repository, usual))
            for item in pending
        ]
        claims.open_stage(connection, sharing.worker, run.run_id, run.options, claimable)


async def _renew(run: StageRun, sharing: Sharing) -> None:
    def renew() -> None:
        with run.database.transaction() as connection:
            claims.renew(connection, sharing.worker)

    while True:
        await asyncio.sleep(sharing.worker.lease.total_seconds() / RENEWALS_A_LEASE)
        try:
            await asyncio.to_thread(renew)
        except FormulaCodeError as error:
            # not a reason to stop: claims are checked again when results are stored
            run.note(f"claims could not be renewed, which is tried again: {error}")
