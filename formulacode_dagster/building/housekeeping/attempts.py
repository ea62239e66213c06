"""Prunes build attempts and logs that nothing references.

Kept for a task: its newest attempt, those that passed, those tried directly after one that passed (they show useless
fixes), and those of agents, which are their bill. For a failed task, as many as an agent would see; for an item that a
month without a release has not settled, all. Of logs of stages, the newest of an item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    Subquery,
    Text,
    and_,
    case,
    cast,
    delete,
    func,
    or_,
    select,
    text,
    tuple_,
)

from formulacode_dagster.building.synthesis.month import MOST_EARLIER
from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.items import ItemState
from formulacode_dagster.operating.store.artifacts import RELEASES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import (
    BLOBS,
    BUILD_ATTEMPTS,
    CHANGES,
    LEDGER,
    LOGS,
    MERGED_PULL_REQUESTS,
)

_T = TypeVar("_T")
AT_ONCE = 500
"""Rows per transaction; no process may store a log meanwhile."""
_OF_ATTEMPT, _OF_STAGE = BUILD_ATTEMPTS.c.log_sha256, LOGS.c.sha256
_REFERENCES = (_OF_ATTEMPT, _OF_STAGE, CHANGES.c.patch_sha256)
# an empty text may belong to anything, whatever it was first stored for
_IS_LOG = and_(BLOBS.c.kind == "log", BLOBS.c.bytes > 0)
_SETTLED = (ItemState.DONE.value, ItemState.REJECTED.value)


@dataclass(frozen=True)
class PrunedAttempts:
    """The attempts and logs removed; with `dry_run`, those that would be."""

    where: ClassVar[str] = "database"

    dry_run: bool
    days: int
    attempts: int = 0
    """Attempts at images and at locks."""
    logs: int = 0
    """Logs of stages, including those of attempts with later logs."""
    bytes: int = 0
    """Unreferenced logs, compressed."""

    def gone(self) -> Iterator[tuple[str, str, int]]:
        """Name, reason and bytes of each removal; the bytes are listed with the first."""
        why, size = f"unreferenced and older than {self.days} days", self.bytes
        for count, what in ((self.attempts, "attempts at locks and images"), (self.logs, "logs of stages")):
            if count:
                yield f"{count} {what}", why, size
                size = 0

    @property
    def summary(self) -> str:
        """One line for a person."""
        if not self.days:
            return f"{self.where}: attempts and logs are kept for ever (FC_ATTEMPTS_DAYS)"
        verb = "to remove" if self.dry_run else "removed"
        return f"{self.where}: {verb}: attempts {self.attempts}, logs {self.logs}, {self.bytes / 1e6:.1f} MB of logs"


def prune_attempts(database: Database, days: int, *, now: datetime, dry_run: bool) -> PrunedAttempts:
    """Remove unneeded attempts older than *days* (0: none), and logs that nothing references then.

    An interrupted run leaves the rest in place. Raises OutsideSystemError.
    """
    if not days:
        return PrunedAttempts(dry_run, days)
    before = now - timedelta(days=days)
    with database.transaction() as connection:
        attempts = connection.execute(_old_attempts(before)).all()
        logs = connection.execute(_old_logs(before)).all()
        if dry_run:
            held = Counter(row[-1] for row in (*attempts, *logs))
            return PrunedAttempts(dry_run, days, len(attempts), len(logs), _bytes_held_alone(connection, held))
    attempts_gone, bytes_of_attempts = _remove(database, _OF_ATTEMPT, attempts)
    logs_gone, bytes_of_logs = _remove(database, _OF_STAGE, logs)
    return PrunedAttempts(dry_run, days, attempts_gone, logs_gone, bytes_of_attempts + bytes_of_logs)


def _old_attempts(before: datetime) -> Select[Any]:
    """Keys and hash of the log of each attempt that may go."""
    columns = BUILD_ATTEMPTS.c
    task = (columns.month, columns.repository_id, columns.number)
    told = select(
        *BUILD_ATTEMPTS.primary_key,
        *(columns[name] for name in ("log_sha256", "started_at", "kind", "run_id", "rung", "made_in")),
        func.row_number().over(partition_by=task, order_by=columns.attempt.desc()).label("from_newest"),
        func.lag(columns.kind).over(partition_by=task, order_by=columns.attempt).label("kind_before"),
        func.lag(columns.run_id).over(partition_by=task, order_by=columns.attempt).label("run_before"),
    ).subquery("told")
    facts = MERGED_PULL_REQUESTS
    same_task = and_(*(facts.c[key.name] == told.c[key.name] for key in facts.primary_key))
    item = facts.c.repository.concat("#").concat(cast(facts.c.number, Text))
    settled = _is_settled(told, told.c.made_in, item)
    after_one_that_held = and_(func.coalesce(told.c.kind_before, "none") == "", told.c.run_before == told.c.run_id)
    found = select(*(told.c[key.name] for key in BUILD_ATTEMPTS.primary_key), told.c.log_sha256)
    return found.select_from(told.outerjoin(facts, same_task)).where(
        told.c.started_at < before,
        told.c.kind != "",
        told.c.rung != Rung.AGENT.value,
        ~after_one_that_held,
        told.c.from_newest > case((settled, 1), else_=MOST_EARLIER),
        or_(settled, _is_released(told)),
    )


def _old_logs(before: datetime) -> Select[Any]:
    """Keys and hash of each log of a stage that may go."""
    of_item = (LOGS.c.month, LOGS.c.stage, LOGS.c.item)
    # an attempt of new inputs is the first again
    order = (LOGS.c.written_at.desc(), LOGS.c.attempt.desc())
    from_newest = func.row_number().over(partition_by=of_item, order_by=order).label("from_newest")
    told = select(*LOGS.primary_key, LOGS.c.sha256, LOGS.c.written_at, from_newest).subquery("told")
    return select(*(told.c[key.name] for key in LOGS.primary_key), told.c.sha256).where(
        told.c.written_at < before,
        told.c.from_newest > 1,
        or_(_is_settled(told, told.c.stage, told.c.item), _is_released(told)),
    )


def _is_settled(told: Subquery, stage: ColumnElement[str], item: ColumnElement[str]) -> ColumnElement[bool]:
    entry = select(LEDGER.c.item).where(
        LEDGER.c.month == told.c.month, LEDGER.c.stage == stage, LEDGER.c.item == item, LEDGER.c.state.in_(_SETTLED)
    )
    return entry.exists()


def _is_released(told: Subquery) -> ColumnElement[bool]:
    return select(RELEASES.table.c.month).where(RELEASES.table.c.month == told.c.month).exists()


def _remove(database: Database, log: Column[Any], rows: Sequence[Row[Any]]) -> tuple[int, int]:
    """Return how many of *rows*, of the table of *log*, were still there, and the bytes of logs removed with them."""
    removed, size = 0, 0
    keys = tuple_(*log.table.primary_key)
    for batch in _batches(rows):
        old = delete(log.table).where(keys.in_([tuple(row[:-1]) for row in batch]), log.in_([row[-1] for row in batch]))
        with database.transaction() as connection:
            # a writer assumes that a log it has found stays until it is referenced
            connection.execute(text("LOCK TABLE blobs IN SHARE ROW EXCLUSIVE MODE"))
            hashes = connection.execute(old.returning(log)).scalars().all()
            unreferenced = [~select(column).where(column == BLOBS.c.sha256).exists() for column in _REFERENCES]
            gone = delete(BLOBS).where(BLOBS.c.sha256.in_(set(hashes)), _IS_LOG, *unreferenced)
            size += sum(connection.execute(gone.returning(func.octet_length(BLOBS.c.content))).scalars())
        removed += len(hashes)
    return removed, size


def _bytes_held_alone(connection: Connection, held: Mapping[str, int]) -> int:
    """Compressed bytes of the logs, by hash, to which no more refers than the number of rows in *held*."""
    counts = [select(func.count()).where(column == BLOBS.c.sha256).scalar_subquery() for column in _REFERENCES]
    statement = select(BLOBS.c.sha256, func.octet_length(BLOBS.c.content), *counts).where(_IS_LOG)
    return sum(
        size
        for batch in _batches(list(held))
        for sha256, size, *references in connection.execute(statement.where(BLOBS.c.sha256.in_(batch)))
        if sum(references) == held[sha256]
    )


def _batches(rows: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (rows[first : first + AT_ONCE] for first in range(0, len(rows), AT_ONCE))
