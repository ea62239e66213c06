"""Export of a month from the database to files that import to the same rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python
from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository
from formulacode_dagster.operating.files.atomic import replacing
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS, REPOSITORIES
from formulacode_dagster.operating.store.pull_requests import merged_of

from . import schema
from .schema import FORMATS, SCHEMAS, FileSchema

if TYPE_CHECKING:
    import polars as pl

Cells = dict[str, Any]
"""A row of a file by column, without unknown values."""

ROWS_AT_ONCE = 500


def export_month(connection: Connection, month: Month, folder: Path, ending: str = ".parquet") -> dict[Path, int]:
    """Write *month* into *folder* as files with *ending*; the rows of each file.

    Raises ConfigurationError if nothing is known of the month, or *folder* has files of an offline source already.
    """
    repositories = REPOSITORIES.read(connection, month.key)
    counts = INTAKE_COUNTS.read(connection, month.key)
    if not repositories:
        raise ConfigurationError(f"no data on {month}", remedy=f"Run it first: fc-data run --month {month}")
    there = [folder / f"{file.name}{suffix}" for file in SCHEMAS for suffix in FORMATS]
    taken = next((path for path in there if path.exists()), None)
    if taken is not None:
        raise ConfigurationError(f"{taken} is there already", remedy="Name another folder, or delete it")
    rows: dict[str, Iterator[Cells]] = {
        schema.REPOSITORIES.name: map(_repository, repositories),
        schema.PULL_REQUESTS.name: (
            _cells(schema.PULL_REQUESTS, row)
            for repository in repositories
            for row in merged_of(connection, month.key, repository.id)
        ),
        schema.COUNTS.name: (_cells(schema.COUNTS, count) for count in counts),
    }
    paths = {file: folder / f"{file.name}{ending}" for file in SCHEMAS}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {path: _write(path, file, rows[file.name]) for file, path in paths.items()}
    except OSError as error:
        raise OutsideSystemError("disk", f"cannot write to {folder}", why=str(error)) from error


def _cells(columns: FileSchema, row: BaseModel, unknown: Collection[str] = ()) -> Cells:
    """Return the cells of *row*, without the *unknown* ones."""
    return row.model_dump(include=set(columns.columns).difference(unknown), exclude_none=True)


def _repository(row: Repository) -> Cells:
    unknown = {"id": row.id <= 0, "stars": row.stars == UNKNOWN_STARS, "language": row.language == UNKNOWN_LANGUAGE}
    return _cells(schema.REPOSITORIES, row, [name for name, is_unknown in unknown.items() if is_unknown])


def _write(path: Path, columns: FileSchema, rows: Iterator[Cells]) -> int:
    with replacing(path) as partial:
        return _WRITERS[path.suffix](partial, columns, rows)


def _jsonl(path: Path, _: FileSchema, rows: Iterator[Cells]) -> int:
    written = 0
    with path.open("wb") as stream:
        for row in rows:
            stream.write(to_json(row) + b"\n")
            written += 1
    return written


def _csv(path: Path, columns: FileSchema, rows: Iterator[Cells]) -> int:
    written = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns.columns)
        writer.writeheader()
        for row in rows:
            cells = {name: to_json(cell).decode() if isinstance(cell, tuple) else cell for name, cell in row.items()}
            writer.writerow(to_jsonable_python(cells))
            written += 1
    return written


def _parquet(path: Path, columns: FileSchema, rows: Iterator[Cells]) -> int:
    import polars as pl

    types = {name: _type(field.annotation) for name, field in columns.model.model_fields.items()}
    # in parts, since Python's own objects take many times the room of a frame
    frames = [pl.DataFrame(batch, schema=types) for batch in iter(lambda: list(islice(rows, ROWS_AT_ONCE)), [])]
    whole = pl.concat([pl.DataFrame(schema=types), *frames])
    whole.write_parquet(path)
    return whole.height


def _type(annotation: Any) -> pl.DataType:
    import polars as pl

    types: dict[Any, pl.DataType] = {
        int: pl.Int64(),
        datetime: pl.Datetime("us", "UTC"),
        datetime | None: pl.Datetime("us", "UTC"),
    }
    if get_origin(annotation) is tuple:
        return pl.List(_type(get_args(annotation)[0]))
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pl.Struct({name: _type(field.annotation) for name, field in annotation.model_fields.items()})
    return types.get(annotation, pl.String())


_WRITERS: dict[str, Callable[[Path, FileSchema, Iterator[Cells]], int]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".jsonl": _jsonl,
}
