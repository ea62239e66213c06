"""All tables of a month: its tasks, and columns too wide for their rows; written, read back and compared together."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from formulacode_dagster.models.agent_run import ReviewVerdict
from formulacode_dagster.models.grading import ReleaseGate
from formulacode_dagster.models.month import Month

from .parquet import KEY, from_parquet, month_frame, rows_checksum, table_frame, to_parquet
from .task_tables import TABLES, Table, TaskRecords

if TYPE_CHECKING:
    import polars as pl

WAITING = frozenset({"replays", "profiles", "reviews"})
"""Columns, and tables, that grow after the release, and by themselves make no revision."""


def data_path(month: str) -> str:
    """Path of the month's tasks in the dataset."""
    return f"data/{month}.parquet"


def verified_path(month: str) -> str:
    """Path of the month's verified tasks in the dataset."""
    return f"verified/{month}.parquet"


def reviewed_path(month: str) -> str:
    """Path of the month's tasks that a person approved in the dataset."""
    return f"reviewed/{month}.parquet"


def is_approved(reviews: str) -> bool:
    """Return True if the newest review of the column `reviews` approves the task."""
    verdicts = [review["verdict"] for review in json.loads(reviews)]
    return verdicts[-1:] == [ReviewVerdict.APPROVED]


def table_path(table: Table, month: str) -> str:
    """Path of one of the month's other tables in the dataset."""
    return f"{table.value}/{month}.parquet"


@dataclass(frozen=True)
class MonthTables:
    """The tables of a month; of a release from before there was one of `wide`, it is not in there."""

    tasks: pl.DataFrame
    wide: Mapping[Table, pl.DataFrame]
    gate: ReleaseGate | None = None
    """Gradings of its tasks, for the index; not part of the rows."""

    @property
    def columns(self) -> dict[str, str]:
        """Types by name; columns of other tables as `samples.value`."""
        wide = {f"{table}.{name}": str(kind) for table in self.wide for name, kind in self.wide[table].schema.items()}
        return {name: str(kind) for name, kind in self.tasks.schema.items()} | wide

    @functools.cached_property
    def checksum(self) -> str:
        """SHA-256 over the rows of every table, in any file."""
        return _digest({"tasks": rows_checksum(self.tasks)} | {t.value: rows_checksum(f) for t, f in self.wide.items()})

    @property
    def schema_checksum(self) -> str:
        """SHA-256 over names, order and types of the columns of every table."""
        return _digest(list(self.columns.items()))

    def settled(self) -> MonthTables:
        """The tables without the columns that grow after a release."""
        wide = {table: frame for table, frame in self.wide.items() if table not in WAITING}
        return replace(self, tasks=self.tasks.drop(WAITING, strict=False), wide=wide)

    def files(self, month: str) -> dict[str, bytes]:
        """Every Parquet file of *month*, by path."""
        return {
            data_path(month): to_parquet(self.tasks),
            verified_path(month): to_parquet(self.tasks.filter(self.tasks["verified"])),
            reviewed_path(month): to_parquet(self.tasks.filter(self.approved)),
            **{table_path(table, month): to_parquet(frame) for table, frame in self.wide.items()},
        }

    @property
    def approved(self) -> list[bool]:
        """Whether the newest review of each task approves it; a month of an older release has no such column."""
        if "reviews" not in self.tasks.columns:
            return [False] * self.tasks.height
        return [is_approved(reviews) for reviews in self.tasks["reviews"]]


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=isinstance(parts, dict)).encode()).hexdigest()


def month_tables(records: Sequence[TaskRecords], gate: ReleaseGate | None = None) -> MonthTables:
    """The tables of a month with these tasks, which its *gate* let pass; raises as `month_frame`."""
    tasks = month_frame([record.row for record in records])
    ordered = sorted(records, key=lambda record: record.row.task_id)
    wide = {
        table: table_frame(model, [row for record in ordered for row in getattr(record, table.value)])
        for table, model in TABLES.items()
    }
    return MonthTables(tasks, wide, gate)


def read_tables(month: Month, content: Callable[[str], bytes | None], tasks: bytes, where: str) -> MonthTables:
    """Return the tables of *month*: its *tasks* as they were read, the others by *content*, which reads a path.

    Raises ItemFailure (`unreadable`), naming *where*, for invalid Parquet.
    """
    wide = {table: found for table in Table if (found := content(table_path(table, month.key))) is not None}
    return MonthTables(
        from_parquet(tasks, f"{where}, {data_path(month.key)}"),
        {table: from_parquet(found, f"{where}, {table_path(table, month.key)}") for table, found in wide.items()},
    )


def first_difference(released: MonthTables, wanted: MonthTables) -> str:
    """One sentence on the differences of a month's tables, for a person who expected none."""
    if released.columns != wanted.columns:
        return "the columns or their types differ"
    before = {row[KEY]: row for row in released.tasks.iter_rows(named=True)}
    after = {row[KEY]: row for row in wanted.tasks.iter_rows(named=True)}
    wide = {table: _differing(released.wide[table], wanted.wide[table]) for table in wanted.wide}
    both = sorted(set(before) & set(after))
    changes = {
        task: [
            *(name for name in before[task] if before[task][name] != after[task][name]),
            *(table.value for table in wide if task in wide[table] and table not in WAITING),
        ]
        for task in both
    }
    changed = [f"{task} ({', '.join(names)})" for task, names in changes.items() if names]
    gone, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    differences = [
        f"{len(tasks)} {word}: {', '.join(tasks[:3])}{' …' if len(tasks) > 3 else ''}"
        for word, tasks in (("no longer there", gone), ("new", new), ("changed", changed))
        if tasks
    ]
    return "; ".join(differences) or "the rows are the same"


def _differing(released: pl.DataFrame, wanted: pl.DataFrame) -> set[str]:
    """Tasks of either table whose rows are not the same in the other."""
    if released.equals(wanted):
        return set()
    before, after = (frame.partition_by(KEY, as_dict=True, maintain_order=True) for frame in (released, wanted))
    both = before.keys() & after.keys()
    differing = (before.keys() ^ after.keys()) | {task for task in both if not before[task].equals(after[task])}
    return {str(task) for (task,) in differing}
