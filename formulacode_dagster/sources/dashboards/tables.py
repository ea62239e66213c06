"""A site as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from formulacode_dagster.operating.files.atomic import disk_errors, replacing

REVISIONS = pl.Schema(
    {"revision": pl.Int64(), "hash": pl.String(), "date": pl.Datetime("ms", "UTC"), "tags": pl.List(pl.String())}
)
"""One row a commit that the site knows; revisions count commits in the order of the history."""
SERIES = pl.Schema(
    {
        "series": pl.UInt32(),
        "benchmark": pl.String(),
        "parameters": pl.List(pl.String()),
        "machine": pl.String(),
        "branch": pl.String(),
        "environment": pl.String(),
        "type": pl.String(),
        "unit": pl.String(),
        "path": pl.String(),
    }
)
"""One row a benchmark with its parameters in an environment (a JSON object, with machine and branch), and its graph."""
POINTS = pl.Schema(
    {
        "series": pl.UInt32(),
        "revision": pl.Int64(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
    }
)
"""One row per point, in the unit of its series; null means not measured, or failed.

`low` and `high` are asv's 99 % interval, which published graphs lack.
"""
SUMMARIES = pl.Schema({"benchmark": pl.String(), "revision": pl.Int64(), "value": pl.Float64()})
"""One row a point of a benchmark's summary, over all environments and parameters."""
REGRESSIONS = pl.Schema(
    {
        "benchmark": pl.String(),
        "path": pl.String(),
        "parameter": pl.Int64(),
        "latest": pl.Float64(),
        "best": pl.Float64(),
        "before_revision": pl.Int64(),
        "after_revision": pl.Int64(),
        "before": pl.Float64(),
        "after": pl.Float64(),
    }
)
"""One row per regression that the site reports; `parameter` counts combinations, null without any."""
FAULTS = pl.Schema({"path": pl.String(), "kind": pl.String(), "detail": pl.String()})


@dataclass(frozen=True)
class SiteTables:
    """The tables of one site, each with the schema of its name above."""

    project: str
    commit_url: str
    """URL prefix of a commit's page; empty if the site has none."""
    revisions: pl.DataFrame
    series: pl.DataFrame
    points: pl.DataFrame
    summaries: pl.DataFrame
    regressions: pl.DataFrame
    faults: pl.DataFrame
    graphs_expected: int
    """Environments × benchmarks of the index; `absent` of them it does not have, which is no fault."""
    graphs_read: int
    summaries_expected: int
    summaries_read: int
    benchmarks: tuple[str, ...]
    """Contents of the index."""

    @property
    def measured(self) -> pl.DataFrame:
        """Return every point with its commit, date, and the columns of its series."""
        return self.points.join(self.series, on="series").join(
            self.revisions.select("revision", "hash", "date"), on="revision", how="left", maintain_order="left"
        )

    def silent_benchmarks(self) -> list[str]:
        """Benchmarks that have a graph in no environment that could be read."""
        told = set(self.series["benchmark"].unique())
        return sorted(set(self.benchmarks) - told)


def write_tables(tables: dict[str, pl.DataFrame], folder: Path) -> None:
    """Write each of *tables* as Parquet into *folder*, by its name. Raises OutsideSystemError when the disk is full."""
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        with disk_errors(str(path)), replacing(path) as partial:
            table.write_parquet(partial)


FRAMES = {
    "revisions": REVISIONS,
    "series": SERIES,
    "points": POINTS,
    "summaries": SUMMARIES,
    "regressions": REGRESSIONS,
    "faults": FAULTS,
}
"""The tables of a site and their schemas."""


def tables_of(site: SiteTables) -> dict[str, pl.DataFrame]:
    """The tables of *site* by their names."""
    return {name: getattr(site, name) for name in FRAMES}
