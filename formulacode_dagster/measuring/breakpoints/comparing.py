"""Replications of stored breakpoints: compared, stored, judged, and shown as one self-contained HTML file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import Connection, select

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.operating.files.atomic import disk_errors, replacing
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.frames import read_frame
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import REPLICATION, REVISIONS

from .choices import WITHIN, Method
from .persistence import load_breakpoints, methods_of, save_replications
from .replication import BreakpointSet, Replication, replicate
from .replication_picture import draw_replication

LEAST_AGREEMENT = 0.9
FEWEST_PAIRS = 10
"""Steps of both sets below which a share says nothing."""
_COMMITS = pl.Schema({"hash": pl.String(), "date": pl.Datetime("ms", "UTC")})


@dataclass(frozen=True)
class SetName:
    """A stored set of breakpoints."""

    dashboard: str
    source: Source

    def __str__(self) -> str:
        return f"{self.dashboard}/{self.source}"


def replicate_and_keep(
    database: Database, reference: SetName, other: SetName, folder: Path, within: int = WITHIN
) -> dict[Method, Replication]:
    """Compare two sets by every method that both have, keep that as all of the first one's dashboard, and write pages.

    Each method has a page and a table of pairs in *folder*. Raises OutsideSystemError for the database or the disk.
    """
    with database.transaction() as connection:
        methods = [
            method
            for method in methods_of(connection, reference.dashboard, reference.source)
            if method in methods_of(connection, other.dashboard, other.source)
        ]
        compared = {
            method: replicate(_load(connection, reference, method), _load(connection, other, method), within)
            for method in sorted(methods)
        }
        save_replications(connection, reference.dashboard, [of.row(method) for method, of in compared.items()])
    for method, of in compared.items():
        write_pages(folder, of, method)
    return compared


def write_pages(folder: Path, replication: Replication, method: Method | None = None) -> Path:
    """Write the page of *replication* and its pairs as Parquet into *folder*; returns the path of the page.

    Their names contain the *method*, if known. Raises OutsideSystemError if the disk is full.
    """
    name = f"replication_{method}" if method else "replication"
    page, pairs = folder / f"{name}.html", folder / f"{name}.parquet"
    with disk_errors(str(pairs)), replacing(pairs) as partial:
        replication.pairs.write_parquet(partial)
    write_replication(page, replication, draw_replication(replication), method or "")
    return page


def stored_replications(connection: Connection, dashboard: str) -> list[dict[str, Any]]:
    """The replications that are kept of *dashboard*."""
    rows = connection.execute(select(REPLICATION).where(REPLICATION.columns.dashboard == dashboard))
    return [dict(row) for row in rows.mappings()]


def same_direction(rows: Sequence[dict[str, Any]]) -> CheckFinding:
    """Pass if LEAST_AGREEMENT of the steps in both sets have the same direction, given at least FEWEST_PAIRS."""
    judged = [row for row in rows if row["pairs"] >= FEWEST_PAIRS]
    against = [
        f"{row['method']}: {row['same_sign']:.0%} of {row['pairs']} steps"
        for row in judged
        if row["same_sign"] < LEAST_AGREEMENT
    ]
    return CheckFinding.by_offenders(
        f"{len(rows)} comparisons, {len(judged)} of them with {FEWEST_PAIRS} steps or more of both sets",
        against,
        {f"{row['method']}_same_sign": row["same_sign"] for row in judged},
    )


def _load(connection: Connection, of: SetName, method: Method) -> BreakpointSet:
    key = {"dashboard": of.dashboard, "source": of.source.value}
    revisions = read_frame(connection, REVISIONS, key, _COMMITS)
    return BreakpointSet(str(of), load_breakpoints(connection, of.dashboard, of.source, method), revisions)


def write_replication(path: Path, replication: Replication, png: bytes, method: str = "") -> None:
    """Write the page of *replication* with its picture *png* to *path*, whole or not at all.

    Raises OutsideSystemError when the disk does not take it.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("formulacode_dagster.measuring.breakpoints"), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("replication.html.j2")
    text = page.render(r=replication, method=method, png=base64.b64encode(png).decode())
    with disk_errors(str(path)), replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
