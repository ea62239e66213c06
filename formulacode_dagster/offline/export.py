"""A month of the database as files that can be taken in again, to the same rows."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic import BaseModel
from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository
from formulacode_dagster.store.artifacts import INTAKE_COUNTS, REPOSITORIES
from formulacode_dagster.store.pull_requests import merged_of

from . import schema
from .schema import FORMATS, SCHEMAS, FileSchema, Kind

if TYPE_CHECKING:
    import polars as pl

Rows = Iterator[dict[str, Any]]
ROWS_AT_ONCE = 500


def export_month(connection: Connection, month: Month, folder: Path, ending: str = ".parquet") -> dict[Path, int]:
    """Write *month* into *folder* as files with *ending*; the rows of each file.

    Raises ConfigurationError when nothing is known of the month, or *folder* holds files of an offline source already.
    """
    repositories = REPOSITORIES.read(connection, month.key)
    counts = INTAKE_COUNTS.read(connection, month.key)
    if not repositories:
        raise ConfigurationError(f"nothing is known of {month}", remedy=f"Run it first: fc-data run --month {month}")
    there = [folder / f"{one.name}{suffix}" for one in SCHEMAS for suffix in FORMATS]
    taken = next((path for path in there if path.exists()), None)
    if taken is not None:
        raise ConfigurationError(f"{taken} is there already", remedy="Name another folder, or delete it")
    rows: dict[str, Rows] = {
        schema.REPOSITORIES.name: map(_repository, repositories),
        schema.PULL_REQUESTS.name: (
            _plain(row) for one in repositories for row in merged_of(connection, month.key, one.id)
        ),
        schema.COUNTS.name: (_plain(count) for count in counts),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {
            folder / f"{one.name}{ending}": _write(folder / f"{one.name}{ending}", one, rows[one.name])
            for one in SCHEMAS
        }
    except OSError as error:
        raise OutsideSystemError("disk", f"cannot write to {folder}", why=str(error)) from error


def _repository(row: Repository) -> dict[str, Any]:
    plain = _plain(row)
    plain["id"] = row.id if row.id > 0 else None
    plain["stars"] = None if row.stars == UNKNOWN_STARS else row.stars
    plain["language"] = None if row.language == UNKNOWN_LANGUAGE else row.language
    return plain


def _plain(row: BaseModel) -> dict[str, Any]:
    return row.model_dump(mode="python")


def _write(path: Path, columns: FileSchema, rows: Rows) -> int:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        written = _WRITERS[path.suffix](partial, columns, rows)
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return written


def _text(value: Any) -> Any:
    """What JSON and CSV hold of *value*."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, (list, tuple)):
        return [_text(one) for one in value]
    if isinstance(value, dict):
        return {key: _text(one) for key, one in value.items()}
    return value


def _jsonl(path: Path, columns: FileSchema, rows: Rows) -> int:
    def write(stream: IO[str]) -> int:
        written = 0
        for row in rows:
            cells = {name: _text(row[name]) for name in columns.by_name if row[name] is not None}
            stream.write(json.dumps(cells, ensure_ascii=False) + "\n")
            written += 1
        return written

    with path.open("w", encoding="utf-8", newline="\n") as stream:
        return write(stream)


def _csv(path: Path, columns: FileSchema, rows: Rows) -> int:
    written = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns.by_name)
        for row in rows:
            cells = (_text(row[name]) for name in columns.by_name)
            writer.writerow([json.dumps(one, ensure_ascii=False) if isinstance(one, list) else one for one in cells])
            written += 1
    return written


def _parquet(path: Path, columns: FileSchema, rows: Rows) -> int:
    import polars as pl

    types = {column.name: _type(column.kind) for column in columns.columns}
    frames: list[pl.DataFrame] = []
    batch: list[dict[str, Any]] = []

    def flush() -> None:
        frames.append(pl.DataFrame(batch, schema=types, orient="row"))
        batch.clear()

    for row in rows:
        batch.append({name: _cell(row[name]) for name in types})
        if len(batch) == ROWS_AT_ONCE:
            flush()
    flush()
    whole = pl.concat(frames)
    whole.write_parquet(path)
    return whole.height


def _cell(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _type(kind: Kind) -> pl.DataType:
    import polars as pl

    time = pl.Datetime("us", "UTC")
    issue = {
        "repository": pl.String(),
        "number": pl.Int64(),
        "title": pl.String(),
        "body": pl.String(),
        "author": pl.String(),
        "created_at": time,
    }
    types: dict[Kind, pl.DataType] = {
        Kind.COUNT: pl.Int64(),
        Kind.NUMBER: pl.Int64(),
        Kind.TIME: time,
        Kind.TEXTS: pl.List(pl.String()),
        Kind.ISSUES: pl.List(pl.Struct(issue)),
    }
    return types.get(kind, pl.String())


_WRITERS: dict[str, Callable[[Path, FileSchema, Rows], int]] = {".parquet": _parquet, ".csv": _csv, ".jsonl": _jsonl}
