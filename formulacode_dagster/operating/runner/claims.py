"""Claims on the items of a stage that several runs share.

A claim is a lease: it is renewed while its holder lives, and free for others once it ran out. The clock is the
server's, so those of the workers may differ. A worker whose claim was taken over keeps no result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Text,
    all_,
    and_,
    any_,
    cast,
    delete,
    func,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from formulacode_dagster.models.items import ItemState, RunOptions, Stage
from formulacode_dagster.operating.store.bulk import insert_missing
from formulacode_dagster.operating.store.tables import CLAIMS, LEDGER, SHARED_STAGES

_COLUMNS = CLAIMS.c


@dataclass(frozen=True)
class Worker:
    """A worker that claims items of one stage of one month, and the length of its lease."""

    stage: Stage
    month: str
    name: str
    lease: timedelta


@dataclass(frozen=True)
class ClaimableItem:
    """An item to process, and what determines its turn."""

    item: str
    inputs: str
    neighbours: str
    """Common property of items that one worker should process: a repository, or an environment."""
    expected_seconds: float


@dataclass(frozen=True)
class SharedStage:
    """A stage that helpers may join: the leading run, its options, and the number of unclaimed items."""

    stage: Stage
    month: str
    run_id: str
    options: RunOptions
    free: int


def open_stage(
    connection: Connection, worker: Worker, run_id: str, options: RunOptions, items: Sequence[ClaimableItem]
) -> None:
    """Share *items* of the stage, led by *run_id*; those that a living worker is at stay with it."""
    statement = insert(SHARED_STAGES).values(
        month=worker.month, stage=worker.stage.value, run_id=run_id, options=options.model_dump(mode="json")
    )
    changes = {name: statement.excluded[name] for name in ("run_id", "options")}
    connection.execute(statement.on_conflict_do_update(index_elements=["month", "stage"], set_=changes))
    _remove_free(connection, worker)
    insert_missing(
        connection,
        CLAIMS,
        [
            {
                "month": worker.month,
                "stage": worker.stage.value,
                "item": item.item,
                "inputs": item.inputs,
                "neighbours": item.neighbours,
                "expected_seconds": item.expected_seconds,
            }
            for item in items
        ],
    )


def close_stage(connection: Connection, worker: Worker, run_id: str) -> None:
    """Stop sharing the stage: helpers finish their items and find no more.

    If another run leads by now, as after a restarted server has dropped the lock of *run_id*, the stage stays shared.
    """
    release(connection, worker)
    led = (SHARED_STAGES.c.month == worker.month, SHARED_STAGES.c.stage == worker.stage.value)
    if connection.execute(delete(SHARED_STAGES).where(*led, SHARED_STAGES.c.run_id == run_id)).rowcount:
        _remove_free(connection, worker)


def close_deserted(connection: Connection, shared: SharedStage, *, dry_run: bool) -> bool:
    """Stop sharing the stage, and remove its items, unless one is claimed; returns True if it was deserted.

    The caller holds the month of the stage, so no run leads it. With *dry_run* nothing changes.
    """
    of_stage = and_(_COLUMNS.month == shared.month, _COLUMNS.stage == shared.stage.value)
    attended = select(func.count()).select_from(CLAIMS).where(of_stage, ~_is_free())
    if connection.execute(attended).scalar_one():
        return False
    if not dry_run:
        led = (SHARED_STAGES.c.month == shared.month, SHARED_STAGES.c.stage == shared.stage.value)
        connection.execute(delete(CLAIMS).where(of_stage, _is_free()))
        connection.execute(delete(SHARED_STAGES).where(*led))
    return True


def shared_stages(connection: Connection) -> list[SharedStage]:
    """Every stage that is shared now, in the order in which they were opened."""
    free = (
        select(func.count())
        .where(_COLUMNS.month == SHARED_STAGES.c.month, _COLUMNS.stage == SHARED_STAGES.c.stage, _is_free())
        .scalar_subquery()
    )
    rows = connection.execute(select(SHARED_STAGES, free.label("free")).order_by(SHARED_STAGES.c.opened_at)).mappings()
    return [
        SharedStage(
            Stage(row["stage"]), row["month"], row["run_id"], RunOptions.model_validate(row["options"]), row["free"]
        )
        for row in rows
    ]


def shared_stage(connection: Connection, stage: Stage, month: str) -> SharedStage | None:
    """*stage* of *month* as it is shared now, or None."""
    return next((it for it in shared_stages(connection) if (it.stage, it.month) == (stage, month)), None)


@dataclass(frozen=True)
class Claim:
    """An item that a worker is at."""

    item: str
    inputs: str


def claim(
    connection: Connection, worker: Worker, *, neighbours: str = "", without: Collection[str] = ()
) -> Claim | None:
    """Claim the next item for *worker*, or return None if all are taken. Items in *without* are left to others.

    First come items with the worker's previous *neighbours*, then those whose neighbours no worker is processing; among
    these, the group that takes longest, so that no worker is left with it at the end.
    """
    groups = (
        select(
            _COLUMNS.neighbours,
            func.bool_or(~_is_free()).label("attended"),
            func.sum(_COLUMNS.expected_seconds).label("seconds"),
        )
        .where(_of(worker))
        .group_by(_COLUMNS.neighbours)
        .subquery()
    )
    is_neighbour = _COLUMNS.neighbours == neighbours
    turn = (
        select(_COLUMNS.item)
        .join(groups, groups.c.neighbours == _COLUMNS.neighbours)
        .where(_of(worker), _is_free(), _COLUMNS.claimed_by != worker.name, _COLUMNS.item != all_(_array(without)))
        .order_by(
            is_neighbour.desc(),
            groups.c.attended,
            groups.c.seconds.desc(),
            _COLUMNS.expected_seconds.desc(),
            _COLUMNS.item,
        )
        .limit(1)
        .with_for_update(of=CLAIMS, skip_locked=True)
    )
    statement = (
        update(CLAIMS)
        .where(_of(worker), _COLUMNS.item == turn.scalar_subquery())
        .values(claimed_by=worker.name, lease_until=func.now() + worker.lease)
        .returning(_COLUMNS.item, _COLUMNS.inputs)
    )
    row = connection.execute(statement).one_or_none()
    return None if row is None else Claim(row.item, row.inputs)


def renew(connection: Connection, worker: Worker) -> None:
    """Renew the lease on everything that *worker* holds; items taken over meanwhile are not taken back."""
    connection.execute(update(CLAIMS).where(_held_by(worker)).values(lease_until=func.now() + worker.lease))


def release(connection: Connection, worker: Worker, items: Collection[str] | None = None) -> None:
    """Leave *items*, or all that *worker* is at, to others."""
    given_up = _held_by(worker) if items is None else _held_by(worker) & _among(items)
    connection.execute(update(CLAIMS).where(given_up).values(claimed_by="", lease_until=text("'-infinity'")))


def finish(connection: Connection, worker: Worker, items: Collection[str]) -> frozenset[str]:
    """Take *items* off the list in the transaction that keeps their results; returns those *worker* still held.

    The others were taken over when its lease had run out: their results are those of whoever is at them now.
    """
    statement = delete(CLAIMS).where(_held_by(worker), _among(items)).returning(_COLUMNS.item)
    return frozenset(connection.execute(statement).scalars())


@dataclass(frozen=True)
class Others:
    """Items of a stage that are not this worker's: the number left, and the number claimed."""

    left: int
    attended: int


def others(connection: Connection, worker: Worker, *, without: Collection[str] = ()) -> Others:
    """Count the items that others hold or that are free, except those in *without*."""
    left = _of(worker) & (_COLUMNS.claimed_by != worker.name) & (_COLUMNS.item != all_(_array(without)))
    statement = select(func.count(), func.count().filter(~_is_free())).where(left)
    return Others(*connection.execute(statement).one())


def expected_seconds(connection: Connection, stage: Stage) -> dict[str, float]:
    """Return the mean duration of an item by repository in *stage*, over all months, in seconds."""
    repository = func.split_part(LEDGER.c.item, "#", 1)
    seconds = func.avg(cast(LEDGER.c.cost["seconds"].astext, Double))
    statement = (
        select(repository, seconds)
        .where(LEDGER.c.stage == stage.value, LEDGER.c.state != ItemState.SKIPPED.value)
        .group_by(repository)
    )
    return {name: mean or 0.0 for name, mean in connection.execute(statement)}


def working_runs(connection: Connection) -> frozenset[str]:
    """Return the ids of runs that are alive: they hold an item with an unexpired lease."""
    # a worker is named after its run, see `assets.materialize`
    runs = select(func.split_part(_COLUMNS.claimed_by, " ", 1)).where(~_is_free(), _COLUMNS.claimed_by != "")
    return frozenset(connection.execute(runs).scalars())


def _of(worker: Worker) -> ColumnElement[bool]:
    return and_(_COLUMNS.month == worker.month, _COLUMNS.stage == worker.stage.value)


def _held_by(worker: Worker) -> ColumnElement[bool]:
    return and_(_of(worker), _COLUMNS.claimed_by == worker.name)


def _is_free() -> ColumnElement[bool]:
    return _COLUMNS.lease_until < func.now()


def _remove_free(connection: Connection, worker: Worker) -> None:
    connection.execute(delete(CLAIMS).where(_of(worker), _is_free()))


def _among(items: Collection[str]) -> ColumnElement[bool]:
    return _COLUMNS.item == any_(_array(items))


def _array(items: Collection[str]) -> ColumnElement[Any]:
    # one parameter, however many items
    return cast(list(items), ARRAY(Text))
