"""`fc-data offline`, and `fc-data run --offline-source`."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from formulacode_dagster.models.month import Month

from .console import console


class OfflineFormat(StrEnum):
    """File format of an export."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


app = typer.Typer(help="Explain the files of an offline source, or export a month as such.", no_args_is_help=True)


@app.command()
def schema() -> None:
    """Describe the files of an offline source and their columns."""
    from formulacode_dagster.sources.offline.schema import describe

    console.print(describe(), markup=False, highlight=False)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Folder to write to; created if missing.")],
    month: Annotated[str, typer.Option("--month", help="Month, YYYY-MM.")],
    kind: Annotated[OfflineFormat, typer.Option("--format", help="How to write it.")] = OfflineFormat.PARQUET,
) -> None:
    """Write a month's repositories and pull requests as files that `run --offline-source` can read."""
    from formulacode_dagster.sources.offline.export import export_month

    from .operate import database

    chosen = Month.parse(month)
    with database() as store, store.transaction() as connection:
        written = export_month(connection, chosen, folder, f".{kind}")
    for path, rows in written.items():
        console.print(f"{path}: {rows} rows", markup=False, highlight=False)


def use_offline_source(text: str) -> None:
    """Run months from *text* in this process, and return the kind of source; raises ConfigurationError if it is
    invalid.
    """
    from formulacode_dagster.sources.offline.detect import detect

    source = detect(text)
    os.environ["FC_OFFLINE_SOURCE"] = ",".join(map(str, source.paths))
    console.print(f"offline: {source}; GitHub is not asked", markup=False, highlight=False)
