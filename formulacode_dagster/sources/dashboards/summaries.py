"""The summary of a benchmark: its series as one, as asv's grid of small plots shows it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .tables import SUMMARIES

MOST_POINTS = 384
"""asv's own: more points than that are averaged over stretches of revisions."""
MOST_FILLED = 0.1
"""Longest gap that is filled, as a share of the measured points of the series."""


def summary_of(benchmark: str, points: pl.DataFrame) -> pl.DataFrame:
    """SUMMARIES of *benchmark*: the geometric mean of all its series (`series`, `revision`, `value`) at each revision.

    Short gaps of a series are interpolated, so that the mean does not jump if one series was not measured.
    """
    if points.is_empty():
        return pl.DataFrame(schema=SUMMARIES)
    wide = points.pivot("series", index="revision", values="value", aggregate_function="mean").sort("revision")
    values = wide.drop("revision").to_numpy().astype(np.float64)
    filled = np.column_stack([_filled(column) for column in values.T])
    # points that no series measured stay missing
    filled[np.isnan(values).all(axis=1)] = np.nan
    means = np.array([_geometric_mean(row[~np.isnan(row)]) for row in filled])
    revisions, kept = _fewer(wide["revision"].to_numpy(), means)
    return pl.DataFrame(
        {"benchmark": [benchmark] * len(revisions), "revision": revisions, "value": kept}, schema=SUMMARIES
    ).with_columns(pl.col("value").fill_nan(None))


def _filled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    there = np.flatnonzero(~np.isnan(values))
    filled = values.copy()
    for first, last in pairwise(there):
        if 1 < last - first <= math.ceil(MOST_FILLED * len(there)) + 1:
            filled[first : last + 1] = np.linspace(values[first], values[last], last - first + 1)
    return filled


def _geometric_mean(values: NDArray[np.float64]) -> float:
    if not len(values):
        return math.nan
    if (values == 0).any():
        return 0.0
    if len(values) == 1:
        # a logarithm and its inverse are not exact
        return float(values[0])
    return float(np.exp(np.log(np.abs(values)).mean())) * (1.0 if values.sum() >= 0 else -1.0)


def _fewer(revisions: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    if len(revisions) < MOST_POINTS:
        return revisions, values
    width = int((revisions[-1] - revisions[0]) / MOST_POINTS) or int(revisions[-1] - revisions[0]) + 1
    # a segment is identified by the revision before which it ends
    stretch = (revisions - revisions[0]) // width
    ends = revisions[0] + (np.unique(stretch) + 1) * width
    means = [values[stretch == number] for number in np.unique(stretch)]
    return ends, np.array([np.nan if np.isnan(part).all() else np.nanmean(part) for part in means])
