"""Runs a stage's items: only what is pending, one bad item never stops the others, nothing is lost on the way.

Results and their ledger entries are written in one transaction as they come in, so a `kill -9` costs at most the items
in flight and those of the last quarter of a second. A dead outside system stops the stage; what is finished by then is
kept.
"""

from __future__ import annotations

import asyncio
import errno
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, NotAsked, OutsideSystemError, Rejection
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.reasons import TRANSIENT_KINDS, FailureKind, SkipReason
from formulacode_dagster.store import blobs, ledger
from formulacode_dagster.store.database import Database

from .progress import listener
from .work import Outcome, R, StageSummary, T, WorkItem

MAX_ATTEMPTS = 3
TAIL = 4000
KEEP_SECONDS = 0.25
"""Between two writes: an item that ends alone is written at once, quick ones are written together."""
KEPT_AT_ONCE = 200
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True)
class StageRun:
    """One materialization: which stage of which month, by whom, limited to what."""

    database: Database
    stage: Stage
    month: str
    run_id: str
    options: RunOptions = RunOptions()


@dataclass(frozen=True)
class _Finished(Generic[R]):
    entry: LedgerEntry
    outcome: Outcome[R] | None


Work = Callable[[WorkItem[T]], Awaitable[Outcome[R]]]
Save = Callable[[Connection, Sequence[R]], None]


def in_thread(function: Callable[[WorkItem[T]], Outcome[R]]) -> Work[T, R]:
    """Make blocking *function* awaitable by running it in a thread."""

    async def work(item: WorkItem[T]) -> Outcome[R]:
        return await asyncio.to_thread(function, item)

    return work


async def run_items(
    run: StageRun,
    items: Sequence[WorkItem[T]],
    work: Work[T, R],
    save: Save[R],
    *,
    concurrency: int | None = None,
    prune: bool = True,
    besides: Collection[str] = (),
    redo: Collection[str] = (),
) -> StageSummary:
    """Do what is pending of *items*, all those the stage has this month; the summary speaks of them alone.

    *work* returns an Outcome, or raises Rejection, ItemFailure or NotAsked for its own item, and OutsideSystemError or
    ConfigurationError, with which no other item would fare better, to stop the stage. *save* writes values inside the
    transaction that also records them. With *prune*, ledger entries of items that are no longer part of the month go,
    those named in *besides* excepted. Items in *redo* are pending whatever the ledger says. Raises what stopped the
    stage after keeping all that was finished.
    """
    with run.database.transaction() as connection:
        before = {entry.item: entry for entry in ledger.entries_of(connection, run.month, run.stage)}
    asked, excluded = _select(items, run.options)
    forced = {item.name for item in asked} if run.options.force else set(redo)
    pending = [item for item in asked if item.name in forced or _is_pending(item, before.get(item.name))]
    unchanged = len(asked) - len(pending)
    if run.options.dry_run:
        return StageSummary(
            unchanged=unchanged,
            would_do=tuple(item.name for item in pending),
            dry_run=True,
            standing=tuple(before[item.name] for item in items if item.name in before),
        )
    with run.database.transaction() as connection:
        ledger.record(connection, [_skipped(run, item) for item in excluded if item.name not in before])
        if prune:
            known = {item.name for item in items} | set(besides)
            ledger.forget(connection, run.month, run.stage, [name for name in before if name not in known])
    listener().stage_started(run.stage, run.month, len(pending), unchanged)
    try:
        worked = await _work_off(run, pending, before, work, save, concurrency or run.options.max_concurrency)
    finally:
        listener().stage_finished(run.stage)
    with run.database.transaction() as connection:
        standing = ledger.entries_of(connection, run.month, run.stage)
    names = {item.name for item in items}
    return StageSummary(
        worked=tuple(worked),
        unchanged=unchanged,
        standing=tuple(entry for entry in standing if entry.item in names),
    )


async def _work_off(
    run: StageRun,
    pending: Sequence[WorkItem[T]],
    before: dict[str, LedgerEntry],
    work: Work[T, R],
    save: Save[R],
    concurrency: int,
) -> list[LedgerEntry]:
    waiting = list(reversed(pending))
    running: set[asyncio.Task[_Finished[R]]] = set()
    finished: list[_Finished[R]] = []
    worked: list[LedgerEntry] = []
    dead: OutsideSystemError | ConfigurationError | None = None
    due = 0.0

    async def keep() -> None:
        nonlocal finished
        batch, finished = finished, []
        await asyncio.to_thread(_keep, run, batch, save)
        worked.extend(one.entry for one in batch)

    try:
        while running or (waiting and dead is None):
            while waiting and dead is None and len(running) < concurrency:
                item = waiting.pop()
                running.add(asyncio.create_task(_do(run, item, before.get(item.name), work)))
            patience = max(0.0, due - time.monotonic()) if finished else None
            ended, running = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                try:
                    finished.append(task.result())
                except (OutsideSystemError, ConfigurationError) as error:
                    dead = dead or error
            if finished and (time.monotonic() >= due or len(finished) >= KEPT_AT_ONCE):
                await keep()
                due = time.monotonic() + KEEP_SECONDS
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await keep()
    if dead is not None:
        await asyncio.to_thread(_forgive, run, worked)
        raise dead
    return worked


def _forgive(run: StageRun, worked: Sequence[LedgerEntry]) -> None:
    """Take back the attempts of failures that led to finding a system dead, lest its down time use them up."""
    tried_before = [one for one in worked if one.reason in TRANSIENT_KINDS and one.attempt > 1]
    with suppress(OutsideSystemError), run.database.transaction() as connection:
        ledger.record(connection, [one.model_copy(update={"attempt": one.attempt - 1}) for one in tried_before])


async def _do(run: StageRun, item: WorkItem[T], previous: LedgerEntry | None, work: Work[T, R]) -> _Finished[R]:
    started = time.monotonic()
    outcome: Outcome[R] | None = None
    state, reason, detail, log_tail = ItemState.DONE, "", "", ""
    try:
        outcome = await work(item)
        detail = outcome.detail
        if outcome.rejection is not None:
            state, reason = ItemState.REJECTED, outcome.rejection.reason.value
            detail = detail or outcome.rejection.detail
    except Rejection as rejection:
        state, reason, detail = ItemState.REJECTED, rejection.reason.value, rejection.detail
        outcome = Outcome(log=rejection.log)
    except ItemFailure as failure:
        state, reason, detail, log_tail = ItemState.FAILED, failure.kind, str(failure), failure.log_tail
        outcome = Outcome(cost=failure.cost, log=failure.log)
    except NotAsked as skip:
        state, reason, detail = ItemState.SKIPPED, skip.reason, skip.what
    except (OutsideSystemError, ConfigurationError):
        raise
    except Exception as error:  # a bug met by one item is that item's failure, with its traceback
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            raise OutsideSystemError(
                "disk", f"no space left for {item.name}", why=str(error), remedy="Free some space, then run again"
            ) from error
        state, reason = ItemState.FAILED, FailureKind.UNEXPECTED
        detail, log_tail = f"{type(error).__name__}: {error}", traceback.format_exc()
    seconds = time.monotonic() - started
    cost = outcome.cost if outcome is not None else Cost()
    same = previous is not None and previous.inputs == item.inputs and previous.state is ItemState.FAILED
    entry = LedgerEntry(
        stage=run.stage,
        month=run.month,
        item=item.name,
        state=state,
        reason=reason,
        detail=detail,
        log_tail=log_tail[-TAIL:],
        attempt=previous.attempt + 1 if same and previous is not None else 1,
        run_id=run.run_id,
        inputs=item.inputs,
        cost=cost.model_copy(update={"seconds": round(seconds, 3)}),
        finished_at=datetime.now(tz=UTC),
    )
    listener().item_finished(run.stage, item.name, state, reason)
    return _Finished(entry, outcome)


def _keep(run: StageRun, finished: Sequence[_Finished[R]], save: Save[R]) -> None:
    if not finished:
        return
    values = [one.outcome.value for one in finished if one.outcome is not None and one.outcome.value is not None]
    with run.database.transaction() as connection:
        if values:
            save(connection, values)
        for one in finished:
            if one.outcome is not None and one.outcome.log:
                blobs.put_log(
                    connection,
                    stage=run.stage,
                    month=run.month,
                    item=one.entry.item,
                    attempt=one.entry.attempt,
                    state=one.entry.state,
                    run_id=run.run_id,
                    text=one.outcome.log,
                )
        ledger.record(connection, [one.entry for one in finished])


def _select(items: Sequence[WorkItem[T]], options: RunOptions) -> tuple[list[WorkItem[T]], list[WorkItem[T]]]:
    names = {str(ItemName.parse(text)) for text in options.only}
    asked: list[WorkItem[T]] = []
    excluded: list[WorkItem[T]] = []
    per_repository: Counter[str] = Counter()
    for item in items:
        # a pull request that is asked for needs its repository's intake
        wanted = (
            item.always
            or not names
            or item.name in names
            or item.repository in names
            or _holds_wanted(item.name, names)
        )
        within = options.limit_per_repository is None or per_repository[item.repository] < options.limit_per_repository
        if wanted and (within or "#" not in item.name):
            per_repository[item.repository] += "#" in item.name
            asked.append(item)
        else:
            excluded.append(item)
    return asked, excluded


def _holds_wanted(name: str, names: set[str]) -> bool:
    return "#" not in name and any(wanted.partition("#")[0] == name for wanted in names)


def _is_pending(item: WorkItem[T], entry: LedgerEntry | None) -> bool:
    if entry is None or entry.inputs != item.inputs or entry.state is ItemState.SKIPPED:
        return True
    if entry.state is ItemState.FAILED:
        return entry.reason in TRANSIENT_KINDS and entry.attempt < MAX_ATTEMPTS
    return False


def _skipped(run: StageRun, item: WorkItem[T]) -> LedgerEntry:
    return LedgerEntry(
        stage=run.stage,
        month=run.month,
        item=item.name,
        state=ItemState.SKIPPED,
        reason=SkipReason.NOT_ASKED,
        detail="outside what the run was asked to do",
        run_id=run.run_id,
        inputs=item.inputs,
    )
