"""Series and their steps, as a picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import polars as pl

from .direction import Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_SERIES = 12
COLUMNS = 2
WIDEST_TITLE = 70
COLOURS = {Direction.IMPROVEMENT: "#2f855a", Direction.REGRESSION: "#b5494b", Direction.UNKNOWN: "#b7791f"}
POINT, INK = "#7b8794", "#1f2933"
DPI = 110


def draw_steps(points: pl.DataFrame, series: pl.DataFrame, steps: pl.DataFrame) -> bytes:
    """Plot the series with the largest steps as PNG: points, levels and, by colour, the direction of each step.

    The value axis is logarithmic if all values of a series are positive; the other axis counts commits.
    """
    from matplotlib.figure import Figure

    size = pl.col("ratio").log().abs().fill_null(float("inf"))
    shown = (
        steps.group_by("series").agg(size.max()).sort("ratio", "series", descending=[True, False]).head(SHOWN_SERIES)
    )
    rows = -(-max(shown.height, 1) // COLUMNS)
    figure = Figure(figsize=(6.2 * COLUMNS, 2.1 * rows + 0.3), layout="constrained", dpi=DPI)
    axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for place, number in zip(axes, shown["series"], strict=False):
        (row,) = series.filter(series=number).iter_rows(named=True)
        _draw(place, row, points.filter(series=number).drop_nulls("value"), steps.filter(series=number))
    for place in axes[shown.height :]:
        place.set_axis_off()
    if not shown.height:
        axes[0].text(0.5, 0.5, "no steps", ha="center", va="center", color=POINT)
    png = io.BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


def _draw(axes: Axes, row: dict[str, Any], points: pl.DataFrame, steps: pl.DataFrame) -> None:
    revisions = points["revision"].to_numpy()
    axes.scatter(revisions, points["value"].to_numpy(), s=5, color=POINT, linewidth=0, zorder=2)
    ends = [*steps["after_revision"][1:], revisions.max()]
    begins = [revisions.min(), *steps["after_revision"]]
    for step, begin, end in zip(steps.iter_rows(named=True), begins, ends, strict=False):
        colour = COLOURS[Direction(step["direction"])]
        axes.hlines(step["before"], begin, step["before_revision"], color=INK, linewidth=1.5, zorder=3)
        axes.hlines(step["after"], step["after_revision"], end, color=INK, linewidth=1.5, zorder=3)
        axes.axvspan(step["before_revision"], step["after_revision"], color=colour, alpha=0.35, linewidth=0)
        axes.axvline(step["after_revision"], color=colour, linewidth=1, zorder=1)
    if points["value"].min() > 0:  # type: ignore[operator]  # polars types it as any value of a column
        axes.set_yscale("log")
    name = f"{row['benchmark']}({', '.join(row['parameters'])})" if row["parameters"] else row["benchmark"]
    title = name if len(name) <= WIDEST_TITLE else f"…{name[1 - WIDEST_TITLE :]}"
    axes.set_title(title, loc="left", fontsize=8, color=INK, parse_math=False)
    axes.set_ylabel(row["unit"], fontsize=7, color=POINT, parse_math=False)
    axes.tick_params(labelsize=7, colors=POINT, which="both")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
