"""Runs a stage's items: only pending ones; one bad item never stops the others, and nothing is lost.

Results and their ledger entries are written in one transaction as they come in, so a `kill -9` costs at most the items
in flight and those of the last quarter of a second. A dead outside system stops the stage; finished items are stored.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.items import Cost, ItemKind, LedgerEntry
from formulacode_dagster.models.reasons import TRANSIENT_KINDS
from formulacode_dagster.operating.cancellation import loops
from formulacode_dagster.operating.cancellation.stopping import clock_of_work
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.checks import remove_verdicts
from formulacode_dagster.operating.store.spending import Spent, add_spending

from .circuit_breaker import CircuitBreaker
from .pending import is_pending, is_unfinished, within
from .progress import listener
from .queues import ItemQueue, queue_of
from .results import Result, keep, result_of, skipped
from .work import BatchWork, Finish, Outcome, R, RunRole, Save, StageRun, StageSummary, T, Work, WorkItem

KEEP_SECONDS = 0.25
"""Time between two writes: a single result is written at once, quick ones are written together."""
KEPT_AT_ONCE = 200
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def in_thread(function: Callable[[WorkItem[T]], Outcome[R]]) -> Work[T, R]:
    """Make blocking *function* awaitable by running it in a thread."""

    async def work(item: WorkItem[T]) -> Outcome[R]:
        return await loops.in_thread(function, item)

    return work


def keep_nothing(connection: Connection, values: Sequence[None]) -> None:
    """Save nothing: for stages whose only result is the ledger entry."""


async def run_items(
    run: StageRun,
    kind: ItemKind,
    items: Sequence[WorkItem[T]],
    work: Work[T, R] | BatchWork[T, R],
    save: Save[R],
    *,
    concurrency: int | None = None,
    redo: Collection[str] = (),
) -> StageSummary:
    """Process the pending ones of *items*, all items of *kind* that the stage has this month, and summarize these.

    At most *concurrency* items, or batches of them, are processed at a time. Ledger entries of other items of the kind
    are removed, as they are no longer part of the month. Items in *redo* are pending whatever the ledger says; with
    `force`, so are all items except those that this run, or a run that it continues, has finished. Raises the error
    that stopped the stage, after storing everything that was finished.
    """
    with run.database.transaction() as connection:
        before = {entry.item: entry for entry in ledger.entries_of(connection, run.month, run.stage, kind)}
    asked, excluded = within(run.options, items)
    forced = set(redo)
    if run.options.force:
        forced |= {item.name for item in asked if not _is_done_by(run, before.get(item.name))}
    pending = [item for item in asked if item.name in forced or is_pending(item, before.get(item.name))]
    unchanged = len(asked) - len(pending)
    if run.options.dry_run:
        return StageSummary(
            unchanged=unchanged,
            would_do=tuple(item.name for item in pending),
            dry_run=True,
            standing=tuple(before[item.name] for item in items if item.name in before),
        )
    if run.sharing is None or run.sharing.part is RunRole.LEADS:
        with run.database.transaction() as connection:
            ledger.record(connection, [skipped(run, item) for item in excluded if item.name not in before])
            known = {item.name for item in items}
            ledger.forget(connection, run.month, run.stage, [name for name in before if name not in known])
            if pending:
                # they are about rows that change now: its gates stay closed until its checks judge the new ones
                remove_verdicts(connection, run.stage, run.month)
    batch_work = work if isinstance(work, BatchWork) else _one_by_one(work)
    worked: list[LedgerEntry] = []
    while True:
        listener().stage_started(run.stage, run.month, len(pending), unchanged)
        try:
            async with queue_of(run, items, pending, batch_work.size or max(1, len(pending))) as queue:
                ended = await _work_off(run, queue, before, batch_work, save, concurrency or run.options.concurrency)
        finally:
            listener().stage_finished(run.stage)
        worked += ended
        before |= {entry.item: entry for entry in ended}
        unfinished = {entry.item for entry in ended if is_unfinished(entry)}
        pending = [item for item in pending if item.name in unfinished]
        if not pending:
            break
        run.note(f"to be continued, since time ran out: {', '.join(item.name for item in pending)}")
    with run.database.transaction() as connection:
        standing = ledger.entries_of(connection, run.month, run.stage, kind)
    names = {item.name for item in items}
    return StageSummary(
        worked=tuple(worked),
        unchanged=unchanged,
        standing=tuple(entry for entry in standing if entry.item in names),
    )


def _is_done_by(run: StageRun, entry: LedgerEntry | None) -> bool:
    """Return True if *run*, or a run that it continues, brought the item to *entry*."""
    return entry is not None and entry.run_id in run.continues


def _one_by_one(work: Work[T, R]) -> BatchWork[T, R]:
    async def single(items: Sequence[WorkItem[T]], finish: Finish[T, R]) -> None:
        for item in items:
            finish(item, await work(item))

    return BatchWork(single, size=1)


async def _work_off(
    run: StageRun,
    queue: ItemQueue[T],
    before: Mapping[str, LedgerEntry],
    work: BatchWork[T, R],
    save: Save[R],
    concurrency: int,
) -> list[LedgerEntry]:
    running: set[asyncio.Task[None]] = set()
    finished: list[Result[R]] = []
    worked: list[LedgerEntry] = []
    breaker: CircuitBreaker[R] = CircuitBreaker()
    cut_short: list[Spent] = []
    news = asyncio.Event()
    dead: OutsideSystemError | ConfigurationError | None = None
    due = 0.0

    def finish(result: Result[R]) -> None:
        entry = result.entry
        listener().item_finished(run.stage, entry.item, entry.state, entry.reason, entry.cost.seconds)
        finished.append(result)
        news.set()

    async def keep_finished() -> None:
        while finished:
            results = finished[:KEPT_AT_ONCE]
            del finished[:KEPT_AT_ONCE]
            kept = await asyncio.to_thread(keep, run, results, save)
            worked.extend(result.entry for result in kept)

    try:
        while running or (dead is None and not queue.is_over):
            while dead is None and len(running) < concurrency and (batch := await queue.take()):
                task = asyncio.create_task(_work_on(run, batch, before, work, breaker, finish, cut_short))
                task.add_done_callback(lambda _: news.set())
                running.add(task)
            keep_in = max(0.0, due - time.monotonic()) if finished else None
            look_in = queue.look_again_in if dead is None and len(running) < concurrency else None
            if running or finished or look_in is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min((t for t in (keep_in, look_in) if t is not None), default=None)):
                        await news.wait()
            news.clear()
            for task in [task for task in running if task.done()]:
                running.remove(task)
                try:
                    task.result()
                except (OutsideSystemError, ConfigurationError) as error:
                    dead = dead or error
            if finished and (time.monotonic() >= due or len(finished) >= KEPT_AT_ONCE):
                await keep_finished()
                due = time.monotonic() + KEEP_SECONDS
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if not running and dead is None:
            for result in breaker.held_back():
                finish(result)
        await keep_finished()
        await asyncio.to_thread(_book, run, cut_short)
    if dead is not None:
        await asyncio.to_thread(_forgive, run, worked)
        raise dead
    return worked


async def _work_on(
    run: StageRun,
    batch: Sequence[WorkItem[T]],
    before: Mapping[str, LedgerEntry],
    work: BatchWork[T, R],
    breaker: CircuitBreaker[R],
    finish: Callable[[Result[R]], None],
    cut_short: list[Spent],
) -> None:
    """Finish each item of *batch* once, whatever *work* does; raises the error that stops the stage.

    Spending since the last finished item is added to *cut_short*, because it has no entry of its own. Seconds in which
    an item waits are no cost of it.
    """
    # each batch is a task of its own, and so has a context of its own
    clock = clock_of_work()
    started = last = clock()
    left = {item.name: item for item in batch}

    def end(item: WorkItem[T], how: Outcome[R] | Exception) -> None:
        nonlocal last
        _raise_if_fatal(how, item.name)
        del left[item.name]
        # threads may wait side by side
        last = max(last, clock())
        result = result_of(run, item, how, previous=before.get(item.name), seconds=last - started)
        for settled in breaker.record(item, how, result):
            finish(settled)

    try:
        await work.work(batch, end)
    except Exception as error:  # a bug met by one item is that item's failure
        if not left:
            raise
        for item in list(left.values()):
            end(item, error)
    else:
        for item in list(left.values()):
            end(item, RuntimeError("its batch ended without a word about it"))
    finally:
        if left:
            cost = Cost(seconds=round(max(0.0, clock() - last), 3))
            cut_short.append(Spent(run.month, run.stage, run.run_id, cost, min(left)))


def _raise_if_fatal(end: object, item: str) -> None:
    """Raise *end* if no other item would fare better."""
    if isinstance(end, (OutsideSystemError, ConfigurationError)):
        raise end
    if isinstance(end, OSError) and end.errno in _DISK_FULL:
        raise OutsideSystemError(
            "disk", f"no space left for {item}", why=str(end), remedy="Free some space, then run again"
        ) from end


def _book(run: StageRun, cut_short: Sequence[Spent]) -> None:
    """Record spending on unfinished items, unless the store is what stopped the stage."""
    if cut_short:
        with suppress(OutsideSystemError), run.database.transaction() as connection:
            add_spending(connection, cut_short)


def _forgive(run: StageRun, worked: Sequence[LedgerEntry]) -> None:
    """Take back the attempts of failures that led to finding a system dead, lest its down time use them up."""
    tried_before = [entry for entry in worked if entry.reason in TRANSIENT_KINDS and entry.attempt > 1]
    with suppress(OutsideSystemError), run.database.transaction() as connection:
        ledger.record(connection, [entry.model_copy(update={"attempt": entry.attempt - 1}) for entry in tried_before])
