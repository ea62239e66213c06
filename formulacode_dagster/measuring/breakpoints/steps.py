"""The steps of all series of a table of points, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from . import methods
from .choices import MINIMUM_CHANGE, Method
from .direction import direction
from .noise import median
from .seeded import Floats, Positions
from .sizes import size_of_step

STEPS = pl.Schema(
    {
        "series": pl.UInt32(),
        "before_revision": pl.Int64(),
        "after_revision": pl.Int64(),
        "before": pl.Float64(),
        "after": pl.Float64(),
        "ratio": pl.Float64(),
        "ratio_low": pl.Float64(),
        "ratio_high": pl.Float64(),
        "points_before": pl.UInt32(),
        "points_after": pl.UInt32(),
        "direction": pl.String(),
    }
)
"""One row per step. `before_revision` is the last one with the old level, `after_revision` the first with the new one:
the cause is among the commits `before..after`. Levels are medians, in the benchmark's unit.
"""


_WIDTH = (pl.col("high") - pl.col("low")).abs()
_WEIGHT = pl.when(_WIDTH.is_finite() & (_WIDTH > 0)).then(2 / _WIDTH).otherwise(float("nan")).alias("low")


def find_steps(
    points: pl.DataFrame,
    series: pl.DataFrame,
    method: Method = Method.SEEDED,
    minimum_change: float = MINIMUM_CHANGE,
) -> pl.DataFrame:
    """The steps (STEPS) of *points* (`series`, `revision`, `value`) of all *series* (`series`, `type`, `unit`).

    Points without a finite value count as not measured; of several at one revision the median counts. Intervals of the
    values (`low`, `high`) give their weights. Raises ConfigurationError as `methods.change_points` does.
    """
    kinds = {number: (kind, unit) for number, kind, unit in series.select("series", "type", "unit").iter_rows()}
    rows = []
    for number, revisions, values, weights in each_series(points):
        kind, unit = kinds[number]
        bounds = bounds_of_levels(values, methods.change_points(values, method, weights), minimum_change)
        for first, position, last in zip(bounds, bounds[1:], bounds[2:], strict=False):
            size = size_of_step(values[first:position], values[position:last])
            rows.append(
                (
                    number,
                    int(revisions[position - 1]),
                    int(revisions[position]),
                    size.before,
                    size.after,
                    size.ratio,
                    size.low,
                    size.high,
                    position - first,
                    last - position,
                    str(direction(kind, unit, size.after - size.before)),
                )
            )
    return pl.DataFrame(rows, schema=STEPS, orient="row")


def each_series(points: pl.DataFrame) -> Iterator[tuple[int, Any, Floats, Floats | None]]:
    """The number of each series, and its revisions, values and weights in order.

    A weight is asv's, the inverse of half the interval's width, and NaN if unknown. It is None for series without any.
    """
    measured = points.filter(pl.col("value").is_finite()).sort("series", "revision")
    if measured.select(pl.struct("series", "revision").is_duplicated().any()).item():
        measured = measured.group_by("series", "revision", maintain_order=True).median()
    numbers, revisions = measured["series"].to_numpy(), measured["revision"].to_numpy()
    values = measured["value"].to_numpy()
    weights = measured.select(_WEIGHT)["low"].to_numpy() if {"low", "high"} <= set(measured.columns) else None
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for first, last in pairwise(bounds):
        if first < last:
            part = slice(first, last)
            known = None if weights is None or np.isnan(weights[part]).all() else weights[part]
            yield int(numbers[first]), revisions[part], values[part], known


def bounds_of_levels(values: Floats, positions: Positions, minimum_change: float) -> list[int]:
    """Return the bounds of levels at least *minimum_change* apart; the smallest steps are merged first."""
    bounds = [0, *positions.tolist(), len(values)]
    levels = [median(values[first:last]) for first, last in pairwise(bounds)]
    while len(levels) > 1:
        changes = [_change(before, after) for before, after in pairwise(levels)]
        least = min(range(len(changes)), key=changes.__getitem__)
        if changes[least] >= np.log1p(minimum_change):
            break
        del bounds[least + 1], levels[least + 1]
        levels[least] = median(values[bounds[least] : bounds[least + 1]])
    return bounds


def _change(before: float, after: float) -> float:
    """Return the size of a step, regardless of direction; a change without a ratio counts as infinite."""
    if min(before, after) > 0:
        return abs(float(np.log(after / before)))
    return np.inf if before != after else 0.0
