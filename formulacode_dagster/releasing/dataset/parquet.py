"""The dataset as a table: its columns, its rows in canonical order, and checksums that outlive the file format."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, get_args, get_origin

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.columns import TableColumn, columns_of, plain_type
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
}


def _type_name(annotation: Any) -> str:
    """Return polars' type for *annotation*: lists of tuples, structs of models."""
    plain = plain_type(annotation)
    if plain in _POLARS_TYPES:
        return _POLARS_TYPES[plain]
    if get_origin(plain) is tuple:
        return f"List({_type_name(get_args(plain)[0])})"
    parts = ", ".join(f"'{name}': {_type_name(field.annotation)}" for name, field in plain.model_fields.items())
    return f"Struct({{{parts}}})"


def _type(annotation: Any) -> pl.DataType:
    """The same as a type of polars, which takes long to import."""
    import polars as pl

    plain = plain_type(annotation)
    if get_origin(plain) is tuple:
        return pl.List(_type(get_args(plain)[0]))
    if issubclass(plain, Frozen):
        return pl.Struct({name: _type(field.annotation) for name, field in plain.model_fields.items()})
    simple = {str: pl.String(), bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64()}
    return pl.Datetime("us", "UTC") if plain is datetime else simple[plain]


def table_columns(model: type[Frozen]) -> tuple[TableColumn, ...]:
    """Name, type as polars calls it, and meaning of each column. A change is one for every reader."""
    return columns_of(model, type_of=lambda _, plain: _type_name(plain))


DATASET_COLUMNS = table_columns(TaskRecord)


@functools.cache
def table_schema(model: type[Frozen]) -> pl.Schema:
    """Columns and types of the rows of *model*, for polars."""
    import polars as pl

    return pl.Schema({name: _type(field.annotation) for name, field in model.model_fields.items()})


def month_frame(records: Sequence[TaskRecord]) -> pl.DataFrame:
    """*records* as a table ordered by task id; no record gives an empty table with the same schema.

    Raises ItemFailure (`duplicate_task`) when two records have the same task id.
    """
    ordered = sorted(records, key=lambda record: record.task_id)
    for before, after in itertools.pairwise(ordered):
        if before.task_id == after.task_id:
            raise ItemFailure(
                FailureKind.DUPLICATE_TASK,
                f"two tasks are called {after.task_id}",
                why=f"{before.repo_name}#{before.pr_number} and {after.repo_name}#{after.pr_number}",
                remedy="Find out which repository took over the other's name, and reject one of them",
            )
    return table_frame(TaskRecord, ordered)


def table_frame(model: type[Frozen], rows: Sequence[Frozen]) -> pl.DataFrame:
    """*rows* of *model* as a table, in their order."""
    import polars as pl

    schema = table_schema(model)
    return pl.DataFrame({name: [_cell(getattr(row, name)) for row in rows] for name in schema}, schema=schema)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Frozen):
        return {name: _cell(getattr(value, name)) for name in type(value).model_fields}
    return [_cell(part) for part in value] if isinstance(value, tuple) else value


def changed_columns(first: Mapping[str, str], later: Mapping[str, str]) -> list[str]:
    """Columns of *first*, types by name, that *later* has not, or has with another type; a sentence each."""
    dropped = [f"column {name} is gone" for name in first if name not in later]
    changed = [
        f"column {name} is {later[name]}, it was {kind}"
        for name, kind in first.items()
        if later.get(name, kind) != kind
    ]
    return dropped + changed


def rows_checksum(frame: pl.DataFrame) -> str:
    """SHA-256 over the rows in the order of their task ids: equal rows give equal checksums in any file."""
    digest = hashlib.sha256()
    for row in frame.sort(KEY, maintain_order=True).iter_rows(named=True):
        line = json.dumps(row, sort_keys=True, ensure_ascii=False, allow_nan=True, default=_plain)
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    raise TypeError(f"a column of the dataset contains a {type(value).__name__}")


def to_parquet(frame: pl.DataFrame) -> bytes:
    """The table as a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    return buffer.getvalue()


def from_parquet(content: bytes, where: str) -> pl.DataFrame:
    """Return the table in a Parquet file; raises ItemFailure (`unreadable`) naming *where* if it is invalid."""
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ItemFailure(
            FailureKind.UNREADABLE, f"{where} is not a readable Parquet file", why=str(error)[:300]
        ) from error
