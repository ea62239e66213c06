"""The dataset as a table: its columns, its rows in canonical order, and checksums that outlive the file format."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from formulacode_dagster.models.columns import columns_of
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import TaskRecord

if TYPE_CHECKING:
    import polars as pl

KEY = "task_id"


_POLARS_TYPES: dict[Any, str] = {
    str: "String",
    bool: "Boolean",
    int: "Int64",
    float: "Float64",
    datetime: "Datetime(time_unit='us', time_zone='UTC')",
    tuple[str, ...]: "List(String)",
    tuple[float, ...]: "List(Float64)",
}

DATASET_COLUMNS = columns_of(TaskRecord, type_of=lambda _, plain: _POLARS_TYPES[plain])
"""Name, type as polars calls it, and meaning of each column of the dataset. A change is one for every reader."""


@functools.cache
def dataset_schema() -> pl.Schema:
    """Columns and types of the dataset, for polars."""
    import polars as pl

    plain = (pl.String(), pl.Boolean(), pl.Int64(), pl.Float64(), pl.Datetime("us", "UTC"))
    kinds = {str(kind): kind for kind in (*plain, pl.List(pl.String()), pl.List(pl.Float64()))}
    return pl.Schema({column.name: kinds[column.type] for column in DATASET_COLUMNS})


def month_frame(records: Sequence[TaskRecord]) -> pl.DataFrame:
    """*records* as a table ordered by task id; no record gives an empty table with the same schema.

    Raises ItemFailure (`duplicate_task`) when two records have the same task id.
    """
    import polars as pl

    ordered = sorted(records, key=lambda record: record.task_id)
    for before, after in itertools.pairwise(ordered):
        if before.task_id == after.task_id:
            raise ItemFailure(
                FailureKind.DUPLICATE_TASK,
                f"two tasks are called {after.task_id}",
                why=f"{before.repo_name}#{before.pr_number} and {after.repo_name}#{after.pr_number}",
                remedy="Find out which repository took over the other's name, and reject one of them",
            )
    schema = dataset_schema()
    columns = {name: [_cell(record, name) for record in ordered] for name in schema}
    return pl.DataFrame(columns, schema=schema, strict=True)


def _cell(record: TaskRecord, name: str) -> Any:
    value = getattr(record, name)
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return list(value) if isinstance(value, tuple) else value


def rows_checksum(frame: pl.DataFrame) -> str:
    """SHA-256 over the rows in the order of their task ids: equal rows give equal checksums, whatever their file."""
    digest = hashlib.sha256()
    for row in frame.sort(KEY).iter_rows(named=True):
        line = json.dumps(row, sort_keys=True, ensure_ascii=False, allow_nan=True, default=_plain)
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    raise TypeError(f"a column of the dataset holds a {type(value).__name__}")


def schema_checksum(frame: pl.DataFrame) -> str:
    """SHA-256 over column names, their order and types."""
    described = json.dumps([[name, str(kind)] for name, kind in frame.schema.items()])
    return hashlib.sha256(described.encode()).hexdigest()


def to_parquet(frame: pl.DataFrame) -> bytes:
    """The table as a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    return buffer.getvalue()


def from_parquet(content: bytes, where: str) -> pl.DataFrame:
    """The table in a Parquet file; raises ItemFailure (`unreadable`) naming *where* when it is none."""
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ItemFailure(
            FailureKind.UNREADABLE, f"{where} is no readable Parquet file", why=str(error)[:300]
        ) from error


def first_difference(released: pl.DataFrame, wanted: pl.DataFrame) -> str:
    """One sentence on how two tables of a month differ, for a person who did not expect that they would."""
    if released.schema != wanted.schema:
        return "the columns or their types differ"
    before = {row[KEY]: row for row in released.iter_rows(named=True)}
    after = {row[KEY]: row for row in wanted.iter_rows(named=True)}
    gone, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    changed = [
        f"{task} ({', '.join(name for name in before[task] if before[task][name] != after[task][name])})"
        for task in sorted(set(before) & set(after))
        if before[task] != after[task]
    ]
    differences = [
        f"{len(tasks)} {word}: {', '.join(tasks[:3])}{' …' if len(tasks) > 3 else ''}"
        for word, tasks in (("no longer there", gone), ("new", new), ("changed", changed))
        if tasks
    ]
    return "; ".join(differences) or "the rows are the same"
