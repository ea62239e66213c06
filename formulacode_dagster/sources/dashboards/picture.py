"""Picture of a dashboard's data."""

from __future__ import annotations

import io

import polars as pl

from .tables import SiteTables

MEASURED, MISSING, INK = "#2f6f9f", "#d9a441", "#1f2933"
DPI = 110


def draw_points(site: SiteTables) -> bytes:
    """Plot the number of measured and missing points by month of their commits, as PNG."""
    from matplotlib.figure import Figure

    counts = (
        site.points.join(site.revisions.select("revision", "date"), on="revision", how="inner")
        .drop_nulls("date")
        .group_by(pl.col("date").dt.truncate("1mo").alias("month"))
        .agg(pl.col("value").count().alias("measured"), pl.col("value").null_count().alias("missing"))
        .sort("month")
    )
    figure = Figure(figsize=(9, 3), layout="constrained", dpi=DPI)
    axes = figure.subplots()
    months, measured, missing = (counts[name].to_list() for name in ("month", "measured", "missing"))
    axes.bar(months, measured, width=25, color=MEASURED, label="measured")
    axes.bar(months, missing, width=25, bottom=measured, color=MISSING, label="missing")
    axes.set_ylabel("points", color=INK)
    axes.set_title(f"{site.project}: points by month of their commits", loc="left", color=INK, parse_math=False)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    png = io.BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()
