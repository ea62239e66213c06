"""Results of items: the ledger entry, and what is stored with it."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic

from formulacode_dagster.models.errors import ItemFailure, NotAsked, Rejection
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry
from formulacode_dagster.models.reasons import FailureKind, SkipReason
from formulacode_dagster.operating.store import blobs, ledger
from formulacode_dagster.operating.store.spending import Spent, add_spending

from . import claims
from .work import Outcome, R, Save, StageRun, T, WorkItem

TAIL = 4000


@dataclass(frozen=True)
class Result(Generic[R]):
    """The entry of an item, its value if there is one, and its whole log."""

    entry: LedgerEntry
    value: R | None
    log: str


def result_of(
    run: StageRun, item: WorkItem[T], end: Outcome[R] | Exception, *, previous: LedgerEntry | None, seconds: float
) -> Result[R]:
    """Return the result of *item*, which last ended as *previous*, took *seconds* now, and ended as *end*."""
    value: R | None = None
    state, reason, detail, log, log_tail, cost = ItemState.DONE, "", "", "", "", Cost()
    match end:
        case Outcome():
            value, cost, log, detail = end.value, end.cost, end.log, end.detail
            if end.rejection is not None:
                state, reason, detail = ItemState.REJECTED, end.rejection.reason, detail or end.rejection.detail
        case Rejection():
            state, reason, detail, log = ItemState.REJECTED, end.reason, end.detail, end.log
        case ItemFailure():
            state, reason, detail, log = ItemState.FAILED, end.kind, str(end), end.log
            log_tail, cost = end.log_tail, end.cost
        case NotAsked():
            state, reason, detail = ItemState.SKIPPED, end.reason, end.what
        case RecursionError() | MemoryError():  # what an item's files hold may be nested without end
            state, reason = ItemState.FAILED, FailureKind.NESTING
            detail = f"its source is nested too deep for a parser: {type(end).__name__}: {end}".rstrip(": ")
            log_tail = "".join(traceback.format_exception(end))
        case _:  # a bug met by one item is that item's failure, with its traceback
            state, reason, detail = ItemState.FAILED, FailureKind.UNEXPECTED, f"{type(end).__name__}: {end}"
            log_tail = "".join(traceback.format_exception(end))
    is_next = previous is not None and previous.inputs == item.inputs and previous.state is ItemState.FAILED
    entry = LedgerEntry(
        stage=run.stage,
        month=run.month,
        item=item.name,
        state=state,
        reason=reason,
        detail=detail,
        log_tail=log_tail[-TAIL:],
        attempt=previous.attempt + 1 if is_next and previous is not None else 1,
        run_id=run.run_id,
        inputs=item.inputs,
        cost=cost.model_copy(update={"seconds": round(seconds, 3)}),
        finished_at=datetime.now(tz=UTC),
    )
    return Result(entry, value, log)


def skipped(run: StageRun, item: WorkItem[T]) -> LedgerEntry:
    """The entry of *item*, which *run* is not to look at."""
    return LedgerEntry(
        stage=run.stage,
        month=run.month,
        item=item.name,
        state=ItemState.SKIPPED,
        reason=SkipReason.NOT_ASKED,
        detail="outside the run's selection",
        run_id=run.run_id,
        inputs=item.inputs,
    )


def keep(run: StageRun, results: Sequence[Result[R]], save: Save[R]) -> list[Result[R]]:
    """Write values, logs and entries of *results* in one transaction; returns those that were this run's to write.

    An item of a shared stage may have been taken over, after its lease had run out: it is its new worker's.
    """
    with run.database.transaction() as connection:
        if run.sharing is not None:
            held = claims.finish(connection, run.sharing.worker, [result.entry.item for result in results])
            results = [result for result in results if result.entry.item in held]
        values = [result.value for result in results if result.value is not None]
        if values:
            save(connection, values)
        for result in results:
            if result.log:
                blobs.put_log(
                    connection,
                    stage=run.stage,
                    month=run.month,
                    item=result.entry.item,
                    attempt=result.entry.attempt,
                    state=result.entry.state,
                    run_id=run.run_id,
                    text=result.log,
                )
        ledger.record(connection, [result.entry for result in results])
        add_spending(connection, [_spent(result.entry) for result in results])
    return list(results)


def _spent(entry: LedgerEntry) -> Spent:
    """Return the spending of an item; clients of GitHub and of the model record their own."""
    own = Cost(bytes=entry.cost.bytes, seconds=entry.cost.seconds)
    return Spent(entry.month, entry.stage, entry.run_id, own, entry.item)
