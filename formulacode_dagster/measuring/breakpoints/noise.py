"""Noise of a series: a robust estimate, hardly affected by outliers and steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NORMAL = 1.4826
"""Factor from the median absolute deviation to the standard deviation of a normal distribution."""
MOST_CORRELATION = 0.9
BLOCK = 25
"""Values over which noise is taken to be the same: enough for a median, few enough for a spell of noise."""


def median(values: NDArray[np.float64]) -> float:
    """The median; a tenth of the time that `np.median` takes for the few values of a level."""
    middle = len(values) // 2
    parted = np.partition(values, middle)
    return float(parted[middle]) if len(values) % 2 else float(parted[:middle].max() + parted[middle]) / 2


def local_deviation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation around each of *values*, from differences of neighbours, robust to steps and
    outliers.

    It is estimated per block of BLOCK values, and nowhere below that of all: noise differs between machines and times
    of a series, and a few equal values by chance do not mean that there is none.
    """
    steps = np.abs(np.diff(values))
    scale = NORMAL / np.sqrt(2.0)
    whole = median(steps)
    blocks = len(steps) // BLOCK
    if blocks < 2:
        return np.full(len(values), scale * whole)
    parted = np.partition(steps[: blocks * BLOCK].reshape(blocks, BLOCK), BLOCK // 2, axis=1)[:, BLOCK // 2]
    repeated = np.repeat(np.maximum(parted, whole), BLOCK)
    deviations: NDArray[np.float64] = np.append(repeated, np.full(len(values) - len(repeated), repeated[-1]))
    deviations *= scale
    return deviations


def long_run_variance(
    values: NDArray[np.float64], noise: NDArray[np.float64], change_points: NDArray[np.int64]
) -> float:
    """Return the variance of a mean of many *values*, in units of their *noise*, from deviations from the level's mean.

    It is the plain variance if neighbours are independent, and more if they are correlated (AR(1)).
    """
    bounds = np.concatenate(([0], change_points, [len(values)]))
    sizes = np.diff(bounds)
    residuals = (values - np.repeat(np.add.reduceat(values, bounds[:-1]) / sizes, sizes)) / noise
    total = float(residuals @ residuals)
    if not total:
        return 0.0
    correlation = min(max(float(residuals[1:] @ residuals[:-1]) / total, 0.0), MOST_CORRELATION)
    return total / (len(values) - len(change_points)) * (1.0 + correlation) / (1.0 - correlation)
