"""Output of `fc-data dashboards`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from formulacode_dagster.cli.console import console, table_of
from formulacode_dagster.sources.dashboards.faults import FaultKind

if TYPE_CHECKING:
    import polars as pl

    from formulacode_dagster.measuring.breakpoints.replication import Replication
    from formulacode_dagster.sources.dashboards.tables import SiteTables

ORDERS = {
    "mirror": "the history of the mirror",
    "published": "the published site",
    "dates": "the dates in the results",
}
SHOWN_NAMES, SHOWN_COMMITS, HASH_LENGTH = 10, 25, 10


def tell_site(site: SiteTables, folder: Path) -> None:
    """Print how much of the index was read, and the problems of the rest."""
    measured = site.points["value"].count()
    console.print(
        f"{site.project}: {site.graphs_read:,} of {site.graphs_expected:,} graphs that its index allows for, "
        f"{site.summaries_read:,} of {site.summaries_expected:,} summaries; {site.series.height:,} series, "
        f"{site.points.height:,} points ({measured:,} measured), {site.revisions.height:,} commits, "
        f"{site.regressions.height:,} regressions of its own",
        markup=False,
    )
    silent = site.silent_benchmarks()
    if silent:
        console.print(f"{len(silent):,} benchmarks have no graph: {_some(silent)}", markup=False, highlight=False)
    for kind, paths in site.faults.group_by("kind", maintain_order=True).agg("path").iter_rows():
        if kind != FaultKind.ABSENT:
            console.print(f"{kind}: {len(paths):,}: {_some(paths)}", markup=False, highlight=False)
    console.print(
        f"Its tables are in {folder}, as Parquet; faults.parquet names every file", markup=False, highlight=False
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_NAMES])
    return shown if len(names) <= SHOWN_NAMES else f"{shown}, …"


def show_commits(commits: pl.DataFrame) -> None:
    """The commits that made most benchmarks faster, newest of equals first."""
    shown = commits.sort("improved", "after_revision", descending=True).head(SHOWN_COMMITS)
    table = table_of("date", "commits", "faster", "slower", "median", "largest")
    for row in shown.iter_rows(named=True):
        table.add_row(
            f"{row['date']:%Y-%m-%d}" if row["date"] else "",
            f"{(row['before_hash'] or '?')[:HASH_LENGTH]}..{(row['after_hash'] or '?')[:HASH_LENGTH]}",
            str(row["improved"]),
            str(row["regressed"]),
            *(f"{row[name]:.3g}×" if row[name] is not None else "" for name in ("median_ratio", "largest_change")),
        )
    console.print(table)


def show_replication(replication: Replication) -> None:
    """Print what two sets of breakpoints have in common, and how well their steps agree."""
    table = table_of("", "estimate", "95 % interval")
    for name, interval in (
        ("correlation (Pearson, of logarithms)", replication.pearson),
        ("correlation of ranks (Spearman)", replication.spearman),
        ("same direction", replication.same_sign),
        ("other / reference (limits of agreement)", replication.bias),
    ):
        estimate = "" if interval.estimate is None else f"{interval.estimate:.2f}"
        table.add_row(name, estimate, "" if interval.low is None else f"{interval.low:.2f} to {interval.high:.2f}")
    console.print(
        f"{replication.commits} breakpoints of both, {replication.only_reference} of {replication.reference} alone, "
        f"{replication.only_other} of {replication.other} alone; {replication.pairs.height} steps of both",
        markup=False,
        highlight=False,
    )
    console.print(table)
