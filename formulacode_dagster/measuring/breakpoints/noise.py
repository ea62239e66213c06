"""How much a series moves by chance: robust, so that outliers and steps hardly count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NORMAL = 1.4826
"""What the median absolute deviation of a normal distribution is multiplied by to be its standard deviation."""
MOST_CORRELATION = 0.9
BLOCK = 25
"""Values over which noise is taken to be the same: enough for a median, few enough for a spell of noise."""


def median(values: NDArray[np.float64]) -> float:
    """The median; a tenth of the time that `np.median` takes for the few values of a level."""
    middle = len(values) // 2
    parted = np.partition(values, middle)
    return float(parted[middle]) if len(values) % 2 else float(parted[:middle].max() + parted[middle]) / 2


def local_deviation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation around each of *values*, by what neighbours differ: steps and outliers hardly count.

    It is that of a block of BLOCK values, and nowhere less than that of all: noise differs between the machines and
    the times of a series, while a few values that happen to agree do not mean that there is none.
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
    """The variance of a mean of many *values*, in units of their *noise*, by what they are off the mean of their level.

    It is the variance itself where neighbours are independent, and more where they wander together (as AR(1) does).
    """
    bounds = np.concatenate(([0], change_points, [len(values)]))
    sizes = np.diff(bounds)
    residuals = (values - np.repeat(np.add.reduceat(values, bounds[:-1]) / sizes, sizes)) / noise
    total = float(residuals @ residuals)
    if not total:
        return 0.0
    correlation = min(max(float(residuals[1:] @ residuals[:-1]) / total, 0.0), MOST_CORRELATION)
    return total / (len(values) - len(change_points)) * (1.0 + correlation) / (1.0 - correlation)
