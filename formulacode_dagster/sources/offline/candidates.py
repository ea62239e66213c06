"""Lists of repositories with an asv suite from elsewhere: BigQuery's or GH Archive's exports, other indexes, by hand.

Where code search is switched off, or lacks some, discovery looks these names up. A file has one repository a line, or
is a table (Parquet, CSV, JSONL) with a column of names and, optionally, one of paths to the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName

NAMES = ("repository", "full_name", "repo_name", "repo")
"""Columns of names, the first that exists; GH Archive has `repo` with a field `name`, BigQuery `repo_name`."""
PATHS = ("config_path", "path")
LISTED = ("", ".txt")
REMEDY = f"Give one owner/repo a line, or a table with a column {', '.join(NAMES[:-1])} or {NAMES[-1]} (FC_DISCOVERY)"


def read_candidates(path: Path) -> Mapping[str, str]:
    """Return the path of its asv configuration, `` if unknown, by repository.

    Raises ConfigurationError for a file that cannot be read, lacks a column of names, or has a name that is none.
    """
    try:
        pairs = _listed(path) if path.suffix in LISTED else _rows(path)
    except ConfigurationError:
        raise
    except Exception as error:  # whatever the readers of four formats raise
        raise ConfigurationError(f"{path} cannot be read", why=str(error), remedy=REMEDY) from error
    found: dict[str, str] = {}
    for name, config in pairs:
        try:
            item = ItemName.parse(name)
        except ConfigurationError as error:
            raise ConfigurationError(f"{path} names {name!r}", why=str(error), remedy=REMEDY) from error
        if item.number is not None:
            raise ConfigurationError(f"{path} names {name!r}, which is a pull request", remedy=REMEDY)
        known = found.get(str(item))
        # the configuration nearest to the top is the one it is for
        found[str(item)] = config if not known else min(known, config or known, key=lambda it: (it.count("/"), it))
    if not found:
        raise ConfigurationError(f"{path} names no repository", remedy=REMEDY)
    return found


def _listed(path: Path) -> list[tuple[str, str]]:
    # a pull request's `#` is no comment
    lines = (f" {line}".partition(" #")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [(line, "") for line in lines if line]


def _rows(path: Path) -> list[tuple[str, str]]:
    import polars as pl

    match path.suffix:
        case ".parquet":
            frame = pl.read_parquet(path)
        case ".csv":
            frame = pl.read_csv(path)
        case ".jsonl" | ".ndjson":
            frame = pl.read_ndjson(path)
        case _:
            raise ConfigurationError(f"{path} is of no known format", remedy=REMEDY)
    name = next((column for column in NAMES if column in frame.columns), None)
    if name is None:
        raise ConfigurationError(f"{path} has no column of names", why=", ".join(frame.columns), remedy=REMEDY)
    names = frame[name]
    if isinstance(names.dtype, pl.Struct):
        names = names.struct.field("name")
    config = next((column for column in PATHS if column in frame.columns), None)
    paths = frame[config].to_list() if config else [None] * frame.height
    return [(str(name), str(path or "")) for name, path in zip(names.to_list(), paths, strict=True) if name]
