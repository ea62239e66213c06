"""A month on several workers: time is virtual, the queue is the platform's own, on a real Postgres.

Workers claim from `SharedQueue` and write with `keep`, as runs do; an item's duration is not waited for, but added to a
clock. Stages follow each other as assets do: none begins before the one before is finished.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import Connection

from bench.scale_month import Task
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner.claims import Worker
from formulacode_dagster.operating.runner.queues import ItemQueue, queue_of
from formulacode_dagster.operating.runner.results import keep, result_of
from formulacode_dagster.operating.runner.work import Outcome, RunRole, Sharing, StageRun, WorkItem
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.orchestration.helpers import LOOK_SECONDS

STAGES = (Stage.ENVIRONMENTS, Stage.IMAGES, Stage.MEASUREMENTS)
START_SECONDS = 2.5 + 0.5 + 5.4
"""A helper run's: in Dagster's queue, until its container is there, until its Python is ready (seen once, by hand)."""
LEASE = timedelta(days=1)
"""Longer than the simulation, which renews none: the server's clock is real."""


@dataclass
class ImageStore:
    """State of one machine."""

    layers: dict[str, float] = field(default_factory=dict)
    """When the `env` layer of a lock is there."""
    images: set[str] = field(default_factory=set)


@dataclass
class Simulation:
    """A month on workers, one item at a time each, every one with its image store."""

    database: Database
    month: str
    tasks: Sequence[Task]
    stores: Sequence[ImageStore]
    seed: int
    clock: float = 0.0
    """Virtual seconds since the month began; the makespan when it is over."""
    busy: float = 0.0
    """Virtual seconds of work, of all workers."""
    asked: int = 0
    """Number of claims and stores, and of claims that found nothing left."""
    done: int = 0

    async def run(self) -> None:
        """All stages, one after the other."""
        dice = random.Random(self.seed)  # noqa: S311 - the same every time, no secret
        for stage in STAGES:
            late = [dice.uniform(0, LOOK_SECONDS) + START_SECONDS for _ in self.stores[1:]]
            await self._run_stage(stage, [0.0, *late])

    async def _run_stage(self, stage: Stage, late: Sequence[float]) -> None:
        began = self.clock
        events: list[_Event] = []
        waiting: list[_Worker] = []
        async with AsyncExitStack() as stack:
            for number, (store, seconds) in enumerate(zip(self.stores, late, strict=True)):
                part = RunRole.HELPS if number else RunRole.LEADS
                name = f"worker {number}"
                sharing = Sharing(part, Worker(stage, self.month, name, LEASE), look_again_seconds=0.0)
                run = StageRun(self.database, stage, self.month, name, sharing=sharing)
                items = [self._item(stage, task, store) for task in self.tasks]
                queue = await stack.enter_async_context(queue_of(run, items, items, 1))
                heapq.heappush(events, _Event(began + seconds, number, _Worker(run, queue, store)))
            while events:
                event = heapq.heappop(events)
                self.clock = event.at
                ready = [event.worker]
                if event.finished is not None:
                    self._keep(event.worker, event.finished, event.took)
                    # whoever waits looks again: something may be free, or all may be over
                    ready += waiting
                    waiting.clear()
                for worker in ready:
                    item = await self._claimed(worker)
                    if item is not None:
                        took = self._seconds(stage, item.value, worker.store)
                        self.busy += took
                        heapq.heappush(events, _Event(self.clock + took, self.asked, worker, item, took))
                    elif not worker.queue.is_over:
                        waiting.append(worker)
        if waiting:
            raise RuntimeError(f"{stage} never ends")

    async def _claimed(self, worker: _Worker) -> WorkItem[Task] | None:
        items = await worker.queue.take()
        self.asked += 1
        return items[0] if items else None

    def _keep(self, worker: _Worker, item: WorkItem[Task], took: float) -> None:
        outcome: Outcome[None] = Outcome()
        result = result_of(worker.run, item, outcome, previous=None, seconds=took)
        self.done += len(keep(worker.run, [result], save_nothing))
        self.asked += 1

    def _item(self, stage: Stage, task: Task, store: ImageStore) -> WorkItem[Task]:
        # as the assets make them
        return WorkItem(
            task.item,
            "v1",
            task,
            shared_with="" if stage is Stage.ENVIRONMENTS else task.lock,
            is_here=stage is not Stage.MEASUREMENTS or task.item in store.images,
        )

    def _seconds(self, stage: Stage, task: Task, store: ImageStore) -> float:
        """Seconds of *stage* of *task* if a worker with *store* begins it now."""
        if stage is Stage.ENVIRONMENTS:
            return task.environment
        if stage is Stage.MEASUREMENTS:
            return task.measurement
        store.images.add(task.item)
        # a layer that another worker is building in the same store is waited for
        ready = store.layers.setdefault(task.lock, self.clock + task.layer)
        return max(0.0, ready - self.clock) + task.image


def save_nothing(connection: Connection, values: Sequence[None]) -> None:
    """The ledger's entry is all that is written."""


@dataclass(frozen=True)
class _Worker:
    run: StageRun
    queue: ItemQueue[Task]
    store: ImageStore


@dataclass(frozen=True, order=True)
class _Event:
    """Something that happens: a worker comes, or ends an item."""

    at: float
    turn: int
    worker: _Worker = field(compare=False)
    finished: WorkItem[Task] | None = field(default=None, compare=False)
    took: float = field(default=0.0, compare=False)
