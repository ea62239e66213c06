"""Batched work gives the guarantees of work on single items."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest
from sqlalchemy import Connection

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, Rejection
from formulacode_dagster.models.items import ItemKind, ItemState, Stage
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.operating.runner.runner import KEPT_AT_ONCE, run_items
from formulacode_dagster.operating.runner.work import BatchWork, Finish, Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database

MONTH = "2026-02"
Items = Sequence[WorkItem[int]]
WorkOnBatch = Callable[[Items, Finish[int, int]], Awaitable[None]]


class Saved:
    """Saved rows, by transaction; signals the first."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []
        self.anything = threading.Event()

    def __call__(self, connection: Connection, values: Sequence[int]) -> None:
        self.writes.append(list(values))
        self.anything.set()


def run(database: Database, count: int, work: WorkOnBatch, saved: Saved, size: int | None = None) -> StageSummary:
    items = [WorkItem(f"a/b#{n}", "v", n) for n in range(1, count + 1)]
    stage_run = StageRun(database, Stage.PULL_REQUESTS, MONTH, "run")
    return asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, BatchWork(work, size), saved))


def ends(database: Database) -> dict[str, str]:
    with database.transaction() as connection:
        entries = ledger.entries_of(connection, MONTH, Stage.PULL_REQUESTS)
    return {entry.item: f"{entry.state} {entry.reason}".strip() for entry in entries}


def test_all_pending_items_are_one_batch_and_end_in_any_order(database: Database) -> None:
    batches: list[list[int]] = []
    how: dict[int, Outcome[int] | Exception] = {
        1: Outcome(10),
        2: ItemFailure(FailureKind.INCOMPLETE, "one is missing"),
        3: Rejection(RejectionReason.EMPTY, "nothing there"),
        4: ZeroDivisionError("a bug of ours"),
    }

    async def work(items: Items, finish: Finish[int, int]) -> None:
        batches.append([item.value for item in items])
        for item in reversed(items):
            finish(item, how[item.value])

    saved = Saved()
    run(database, 4, work, saved)
    assert ends(database) == {
        "a/b#1": "done",
        "a/b#2": "failed incomplete",
        "a/b#3": "rejected empty",
        "a/b#4": "failed unexpected",
    }
    assert batches == [[1, 2, 3, 4]]
    assert saved.writes == [[10]]
    run(database, 4, work, saved)
    assert batches[1:] == [[2, 4]]


def test_a_batch_is_no_larger_than_it_may_be(database: Database) -> None:
    sizes: list[int] = []

    async def work(items: Items, finish: Finish[int, int]) -> None:
        sizes.append(len(items))
        for item in items:
            finish(item, Outcome(item.value))

    assert run(database, 7, work, Saved(), size=3).count(ItemState.DONE) == 7
    assert sorted(sizes) == [1, 3, 3]


def test_an_exception_of_a_batch_ends_its_open_items_only(database: Database) -> None:
    async def work(items: Items, finish: Finish[int, int]) -> None:
        finish(items[0], Outcome(items[0].value))
        if items[0].value == 1:
            raise ItemFailure(FailureKind.TIMEOUT, "late")
        finish(items[1], Outcome(items[1].value))

    run(database, 4, work, Saved(), size=2)
    assert ends(database) == {"a/b#1": "done", "a/b#2": "failed timeout", "a/b#3": "done", "a/b#4": "done"}


def test_an_item_that_its_batch_forgets_has_failed(database: Database) -> None:
    async def work(items: Items, finish: Finish[int, int]) -> None:
        finish(items[0], Outcome(1))

    summary = run(database, 2, work, Saved())
    assert ends(database) == {"a/b#1": "done", "a/b#2": "failed unexpected"}
    assert "without a word" in summary.standing[1].detail


def test_an_item_ends_once(database: Database) -> None:
    async def work(items: Items, finish: Finish[int, int]) -> None:
        finish(items[0], Outcome(1))
        finish(items[0], ItemFailure(FailureKind.TIMEOUT, "late"))

    with pytest.raises(KeyError):
        run(database, 1, work, Saved())
    assert ends(database) == {"a/b#1": "done"}


@pytest.mark.parametrize(
    ("dead", "words"),
    [(OutsideSystemError("github", "gone"), "github: gone"), (OSError(errno.ENOSPC, "full"), "disk: no space left")],
)
@pytest.mark.parametrize("is_said_of_an_item", [False, True])
def test_a_dead_system_stops_the_stage_and_what_was_finished_is_kept(
    database: Database, dead: Exception, words: str, is_said_of_an_item: bool
) -> None:
    async def work(items: Items, finish: Finish[int, int]) -> None:
        finish(items[0], Outcome(1))
        if is_said_of_an_item:
            finish(items[1], dead)
        raise dead

    saved = Saved()
    with pytest.raises(OutsideSystemError, match=words):
        run(database, 3, work, saved)
    assert ends(database) == {"a/b#1": "done"}
    assert saved.writes == [[1]]


def test_what_is_finished_is_written_while_its_batch_goes_on(database: Database) -> None:
    saved = Saved()

    async def work(items: Items, finish: Finish[int, int]) -> None:
        finish(items[0], Outcome(1))
        assert await asyncio.to_thread(saved.anything.wait, 20)
        finish(items[1], Outcome(2))

    run(database, 2, work, saved)
    assert saved.writes == [[1], [2]]


def test_many_that_end_at_once_are_written_in_transactions_of_bounded_size(database: Database) -> None:
    async def work(items: Items, finish: Finish[int, int]) -> None:
        for item in items:
            finish(item, Outcome(item.value))

    saved = Saved()
    assert run(database, 1000, work, saved).count(ItemState.DONE) == 1000
    assert max(map(len, saved.writes)) <= KEPT_AT_ONCE
    assert len(saved.writes) < 10


def test_of_a_cancelled_batch_only_what_was_finished_is_recorded(database: Database) -> None:
    saved = Saved()

    async def work(items: Items, finish: Finish[int, int]) -> None:
        finish(items[0], Outcome(1))
        await asyncio.sleep(600)

    async def cancelled() -> None:
        items = [WorkItem(f"a/b#{n}", "v", n) for n in (1, 2)]
        stage_run = StageRun(database, Stage.PULL_REQUESTS, MONTH, "run")
        started = asyncio.create_task(run_items(stage_run, ItemKind.PULL_REQUEST, items, BatchWork(work), saved))
        assert await asyncio.to_thread(saved.anything.wait, 20)
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await started

    asyncio.run(cancelled())
    assert ends(database) == {"a/b#1": "done"}
