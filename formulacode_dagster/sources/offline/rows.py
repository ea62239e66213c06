"""Rows of a CSV, JSONL or Parquet file, one after the other: nothing but the row at hand is kept in memory.

CSV and JSONL are read with the standard library, which can give line numbers (polars cannot); polars reads Parquet.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from formulacode_dagster.models.month import Month

from .problems import Problems
from .schema import LONGEST, FileSchema

LONGEST_LINE = 16 * LONGEST
PARQUET_ROWS = 1_000
"""Rows of a Parquet file in memory, besides their row groups."""
_MAGIC = b"PAR1"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row: its place (`line 7`), and its cells as in the file. Missing cells are absent."""

    where: str
    cells: dict[str, Any]


def read_rows(
    path: Path,
    schema: FileSchema,
    problems: Problems,
    month: Month | None = None,
    longest_line: int = LONGEST_LINE,
) -> Iterator[SourceRow]:
    """Iterate over the rows of *path*, skipping other months than *month* if the file's order allows.

    Problems of the file or of a row go to *problems*, and that row is skipped; a CSV or JSONL file is read up to its
    first line of more than *longest_line* characters.
    """
    readers = {".csv": _csv, ".jsonl": _jsonl}
    try:
        if path.suffix == ".parquet":
            yield from _parquet(path, schema, problems, month)
        else:
            with path.open("rb") as stream:
                start = stream.read(2)
            if start in _UTF16:
                problems.add(path, "", "", "is UTF-16; save it as UTF-8")
                return
            # bytes that are not UTF-8 become surrogates, which their cell is rejected for
            with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
                yield from readers[path.suffix](path, text, schema, problems, longest_line)
    except OSError as error:
        problems.add(path, "", "", f"cannot be read: {error.strerror or error}")


def _all_known(path: Path, where: str, names: Iterable[str], schema: FileSchema, problems: Problems) -> bool:
    """Return True if *schema* has columns with these *names*."""
    strangers = [name for name in names if name not in schema.columns]
    for name in strangers:
        problems.add(path, where, name, f"there is no such column; there are {', '.join(schema.columns)}")
    return not strangers


def _is_header(path: Path, names: list[str], schema: FileSchema, problems: Problems) -> bool:
    """Return True if *names* can be the columns of a file of *schema*."""
    where = "header" if path.suffix == ".csv" else ""
    missing = [name for name in schema.required if name not in names]
    for name in missing:
        problems.add(path, where, name, "this column is missing")
    _all_known(path, where, names, schema, problems)
    doubled = [name for name, times in Counter(names).items() if times > 1]
    for name in doubled:
        problems.add(path, where, name, "this column is there twice")
    return not missing and not doubled


def _csv(path: Path, text: IO[str], schema: FileSchema, problems: Problems, longest_line: int) -> Iterator[SourceRow]:
    csv.field_size_limit(longest_line)
    records = csv.reader(text, strict=True)
    names: list[str] | None = None
    line = 0
    try:
        for cells in records:
            line, where = records.line_num, f"line {line + 1}"
            if not cells:
                continue
            if names is None:
                names = cells
                if not _is_header(path, names, schema, problems):
                    return
            elif len(cells) != len(names):
                problems.add(path, where, "", f"has {len(cells)} cells, the header {len(names)}")
            else:
                given = zip(names, cells, strict=True)
                # CSV has only the empty cell for a missing value
                yield SourceRow(where, {name: cell for name, cell in given if cell or name in schema.required})
    except csv.Error as error:
        problems.add(path, f"line {line + 1}", "", f"cannot be read as CSV: {error}")
        return
    if names is None:
        _is_header(path, [], schema, problems)


def _jsonl(path: Path, text: IO[str], schema: FileSchema, problems: Problems, longest_line: int) -> Iterator[SourceRow]:
    for number, line in enumerate(iter(lambda: text.readline(longest_line + 1), ""), start=1):
        where = f"line {number}"
        if len(line) > longest_line:
            problems.add(path, where, "", f"is longer than {longest_line:,} characters")
            return
        if not line.strip():
            continue
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.add(path, where, "", f"is not JSON: {error}")
            continue
        if not isinstance(cells, dict):
            problems.add(path, where, "", "is not a JSON object")
            continue
        if _all_known(path, where, cells, schema, problems):
            yield SourceRow(where, cells)


def _parquet(path: Path, schema: FileSchema, problems: Problems, month: Month | None) -> Iterator[SourceRow]:
    import polars as pl

    with path.open("rb") as stream:
        start = stream.read(len(_MAGIC))
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - len(_MAGIC)))
        if start != _MAGIC or stream.read() != _MAGIC:
            problems.add(path, "", "", "is not a Parquet file, or is truncated")
            return
    place = "row number"
    try:
        scan = pl.scan_parquet(path, glob=False, row_index_name=place, row_index_offset=1)
        types = dict(scan.collect_schema())
        del types[place]
        if not _is_header(path, list(types), schema, problems):
            return
        naive = [name for name, kind in types.items() if isinstance(kind, pl.Datetime) and kind.time_zone is None]
        for name in naive:
            problems.add(path, "", name, "its times have no zone; write them as UTC")
        if naive:
            return
        if month is not None and isinstance(types["merged_at"], pl.Datetime):
            moment = pl.col("merged_at")
            # rows without a time are kept, so that they are reported
            scan = scan.filter(moment.is_between(month.start, month.end, closed="left") | moment.is_null())
        for batch in scan.collect_batches(chunk_size=PARQUET_ROWS, maintain_order=True):
            for cells in cast("Iterable[dict[str, Any]]", batch.iter_rows(named=True)):
                where = f"row {cells.pop(place)}"
                yield SourceRow(where, cells)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        # polars panics on some damaged files; that is no BaseException of Python's own
        problems.add(path, "", "", f"cannot be read as Parquet: {next(islice(str(error).splitlines(), 1), 'damaged')}")
