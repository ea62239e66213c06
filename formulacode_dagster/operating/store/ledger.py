"""The ledger: how items ended stages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Text, any_, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from formulacode_dagster.models.items import ItemKind, ItemState, LedgerEntry, Stage

from .bulk import upsert
from .tables import LEDGER


def record(connection: Connection, entries: Sequence[LedgerEntry]) -> None:
    """Write *entries*, replacing earlier ones of their items."""
    upsert(connection, LEDGER, [_to_row(entry) for entry in entries])


def entries_of(
    connection: Connection, month: str, stage: Stage | None = None, kind: ItemKind | None = None
) -> list[LedgerEntry]:
    """Return the entries of *month*, optionally of one stage and of one kind of item, ordered by stage and item."""
    statement = select(LEDGER).where(LEDGER.c.month == month)
    if stage is not None:
        statement = statement.where(LEDGER.c.stage == stage.value)
    if kind is not None:
        statement = statement.where(LEDGER.c.kind == kind.value)
    rows = connection.execute(statement.order_by(LEDGER.c.stage, LEDGER.c.item)).mappings()
    return [_from_row(dict(row)) for row in rows]


def items_in_state(connection: Connection, month: str, stage: Stage, state: ItemState) -> list[str]:
    """Names of the items of *stage* that are in *state*, sorted."""
    statement = (
        select(LEDGER.c.item)
        .where(LEDGER.c.month == month, LEDGER.c.stage == stage.value, LEDGER.c.state == state.value)
        .order_by(LEDGER.c.item)
    )
    return list(connection.execute(statement).scalars())


@dataclass(frozen=True)
class Ending:
    """Number of items of one kind that ended a stage in one way."""

    stage: Stage
    kind: ItemKind
    state: ItemState
    reason: str
    count: int


def endings(connection: Connection, month: str) -> list[Ending]:
    """Count how the items of *month* ended, by stage in the order of the graph, then repositories before pull requests.

    The steps of a stage are not counted.
    """
    ways = (LEDGER.c.stage, LEDGER.c.kind, LEDGER.c.state, LEDGER.c.reason)
    statement = (
        select(*ways, func.count()).where(LEDGER.c.month == month, LEDGER.c.kind != ItemKind.STEP.value).group_by(*ways)
    )
    endings = [
        Ending(Stage(row[0]), ItemKind(row[1]), ItemState(row[2]), row[3], row[4])
        for row in connection.execute(statement)
    ]
    stages, kinds = list(Stage), list(ItemKind)
    return sorted(
        endings,
        key=lambda ending: (stages.index(ending.stage), kinds.index(ending.kind), ending.state, ending.reason),
    )


def months_with_done(connection: Connection, stage: Stage, kind: ItemKind, *, before: str) -> list[str]:
    """Return the months before *before* in which *stage* ended items of *kind* as done, in order."""
    statement = (
        select(LEDGER.c.month)
        .where(
            LEDGER.c.stage == stage.value,
            LEDGER.c.kind == kind.value,
            LEDGER.c.month < before,
            LEDGER.c.state == ItemState.DONE.value,
        )
        .distinct()
        .order_by(LEDGER.c.month)
    )
    return list(connection.execute(statement).scalars())


def finished_since(connection: Connection, moment: datetime) -> int:
    """Return how many items of any stage and month were processed since *moment*; skips do not count."""
    statement = select(func.count()).where(LEDGER.c.finished_at >= moment, LEDGER.c.state != ItemState.SKIPPED.value)
    return int(connection.execute(statement).scalar_one())


def story(connection: Connection, item: str) -> list[LedgerEntry]:
    """Return every entry of one item, over all months, in the order of the stages."""
    rows = connection.execute(select(LEDGER).where(LEDGER.c.item == item)).mappings()
    order = list(Stage)
    return sorted((_from_row(dict(row)) for row in rows), key=lambda entry: (entry.month, order.index(entry.stage)))


def forget(connection: Connection, month: str, stage: Stage, items: Collection[str]) -> None:
    """Drop entries of items that are no longer part of the month."""
    if items:
        # one array, however many: Postgres takes 65,535 parameters
        among = LEDGER.c.item == any_(cast(list(items), ARRAY(Text)))
        connection.execute(delete(LEDGER).where(LEDGER.c.month == month, LEDGER.c.stage == stage.value, among))


def rename_item(connection: Connection, month: str, stage: Stage, old: str, new: str) -> None:
    """Rename the entry of *old* to *new*, replacing that of *new*; without an entry of *old* nothing happens."""
    of_stage = (LEDGER.c.month == month) & (LEDGER.c.stage == stage.value)
    if connection.execute(select(LEDGER.c.item).where(of_stage, LEDGER.c.item == old)).first() is not None:
        connection.execute(delete(LEDGER).where(of_stage, LEDGER.c.item == new))
        connection.execute(update(LEDGER).where(of_stage, LEDGER.c.item == old).values(item=new))


def _to_row(entry: LedgerEntry) -> dict[str, Any]:
    return {**entry.model_dump(mode="json"), "finished_at": entry.finished_at or datetime.now(tz=UTC)}


def _from_row(row: dict[str, Any]) -> LedgerEntry:
    # the model derives it from the name
    return LedgerEntry.model_validate({name: value for name, value in row.items() if name != "kind"})
