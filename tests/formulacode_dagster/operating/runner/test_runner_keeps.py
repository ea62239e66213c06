"""What the runner stores, and when: finished items in batches, along with the cost of unfinished ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, select

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.items import ItemKind, ItemState, RunOptions, Stage
from formulacode_dagster.operating.runner.runner import KEEP_SECONDS, KEPT_AT_ONCE, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, WorkItem
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import SPENDING
from tests.support.entries import MONTH, states_of


def test_a_result_that_cannot_be_saved_is_not_recorded_as_done(database: Database) -> None:
    def refuse(connection: Connection, values: Sequence[str]) -> None:
        raise OutsideSystemError("postgres", "gone")

    async def work(item: WorkItem[str]) -> Outcome[str]:
        return Outcome("x")

    with pytest.raises(OutsideSystemError):
        asyncio.run(
            run_items(
                StageRun(database, Stage.IMAGES, MONTH, "run"),
                ItemKind.PULL_REQUEST,
                [WorkItem("a/b#1", "v", "")],
                work,
                refuse,
            )
        )
    assert states_of(database, Stage.IMAGES) == {}


class Clock:
    """Stands still but for what a test adds."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    @classmethod
    def of_the_runner(cls, monkeypatch: pytest.MonkeyPatch) -> Clock:
        """Return one by which stages and the seconds of their items go."""
        clock = cls()
        for module in ("runner.runner", "cancellation.stopping"):
            monkeypatch.setattr(f"formulacode_dagster.operating.{module}.time", clock)
        return clock


class Batches:
    """Collects how values are saved together, and signals a given number."""

    def __init__(self, expected: int = 1) -> None:
        self.sizes: list[int] = []
        self._expected = expected
        self._reached = threading.Event()

    def __call__(self, connection: Connection, values: Sequence[str]) -> None:
        self.sizes.append(len(values))
        if sum(self.sizes) >= self._expected:
            self._reached.set()

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, 20)


def test_quick_items_are_written_together(database: Database) -> None:
    async def work(item: WorkItem[str]) -> Outcome[str]:
        return Outcome("x")

    batches = Batches()
    items = [WorkItem(f"a/b#{n}", "v", "") for n in range(1000)]
    summary = asyncio.run(
        run_items(StageRun(database, Stage.IMAGES, MONTH, "run"), ItemKind.PULL_REQUEST, items, work, batches)
    )
    assert (summary.count(ItemState.DONE), len(summary.worked), sum(batches.sizes)) == (1000, 1000, 1000)
    assert len(batches.sizes) < 50
    # what one transaction costs at most when the process is killed
    assert max(batches.sizes) < KEPT_AT_ONCE + 8


def test_an_item_is_written_while_a_longer_one_goes_on(database: Database) -> None:
    batches = Batches(expected=2)

    async def work(item: WorkItem[str]) -> Outcome[str]:
        if item.name == "a/b#1":
            # two are written one after the other, and neither waits for this one
            await batches.reached()
        elif item.name == "a/b#3":
            await asyncio.sleep(KEEP_SECONDS / 5)
        return Outcome("x")

    items = [WorkItem(f"a/b#{n}", "v", "") for n in (1, 2, 3)]
    summary = asyncio.run(
        run_items(StageRun(database, Stage.IMAGES, MONTH, "run"), ItemKind.PULL_REQUEST, items, work, batches)
    )
    assert summary.count(ItemState.DONE) == 3
    assert sum(batches.sizes[:-1]) == 2


def test_what_is_finished_when_the_run_is_cancelled_is_kept(database: Database) -> None:
    async def work(item: WorkItem[str]) -> Outcome[str]:
        if item.name == "a/b#9":
            await asyncio.sleep(600)
        return Outcome("x")

    batches = Batches()

    async def cancelled() -> None:
        items = [WorkItem(f"a/b#{n}", "v", "") for n in range(1, 10)]
        stage_run = StageRun(database, Stage.IMAGES, MONTH, "run", RunOptions(concurrency=2))
        started = asyncio.create_task(run_items(stage_run, ItemKind.PULL_REQUEST, items, work, batches))
        await batches.reached()
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await started

    asyncio.run(cancelled())
    done = states_of(database, Stage.IMAGES)
    assert set(done.values()) == {ItemState.DONE}
    assert len(done) == sum(batches.sizes) >= 1
    assert "a/b#9" not in done


def seconds_spent(database: Database) -> dict[str, float]:
    with database.transaction() as connection:
        rows = connection.execute(select(SPENDING.c.item, SPENDING.c.cost)).all()
    return {item: cost["seconds"] for item, cost in rows if "seconds" in cost}


def test_what_an_item_took_that_was_cut_short_is_on_the_books(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock.of_the_runner(monkeypatch)

    async def work(item: WorkItem[str]) -> Outcome[str]:
        clock.now += 70
        if item.name == "a/b#2":
            begun.set()
            await asyncio.Event().wait()
        return Outcome("x")

    async def cancelled() -> None:
        stage_run = StageRun(database, Stage.IMAGES, MONTH, "run", RunOptions(concurrency=1))
        items = [WorkItem(f"a/b#{n}", "v", "") for n in (1, 2, 3)]
        started = asyncio.create_task(run_items(stage_run, ItemKind.PULL_REQUEST, items, work, Batches()))
        await begun.wait()
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await started

    begun = asyncio.Event()
    asyncio.run(cancelled())
    assert seconds_spent(database) == {"a/b#1": 70, "a/b#2": 70}


def test_what_an_item_took_that_found_a_system_dead_is_on_the_books(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock.of_the_runner(monkeypatch)

    async def work(_item: WorkItem[str]) -> Outcome[str]:
        clock.now += 70
        raise OutsideSystemError("docker", "no daemon")

    stage_run = StageRun(database, Stage.IMAGES, MONTH, "run", RunOptions(concurrency=1))
    with pytest.raises(OutsideSystemError):
        asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, [WorkItem("a/b#1", "v", "")], work, Batches()))
    assert seconds_spent(database) == {"a/b#1": 70}
    assert states_of(database, Stage.IMAGES) == {}
