"""How much a series moves by chance: robust, so that outliers and steps hardly count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NORMAL = 1.4826
"""What the median absolute deviation of a normal distribution is multiplied by to be its standard deviation."""
MOST_CORRELATION = 0.9


def median(values: NDArray[np.float64]) -> float:
    """The median; a tenth of the time that `np.median` takes for the few values of a level."""
    middle = len(values) // 2
    parted = np.partition(values, middle)
    return float(parted[middle]) if len(values) % 2 else float(parted[:middle].max() + parted[middle]) / 2


def normal_deviation(values: NDArray[np.float64]) -> float:
    """The standard deviation, by the median absolute deviation."""
    return NORMAL * median(np.abs(values - median(values)))


def long_run_variance(values: NDArray[np.float64], change_points: NDArray[np.int64]) -> float:
    """The variance of a mean of many *values*, times their number, by what they are off the mean of their level.

    It is the variance itself where neighbours are independent, and more where they wander together (as AR(1) does).
    """
    bounds = np.concatenate(([0], change_points, [len(values)]))
    sizes = np.diff(bounds)
    residuals = values - np.repeat(np.add.reduceat(values, bounds[:-1]) / sizes, sizes)
    total = float(residuals @ residuals)
    if not total:
        return 0.0
    correlation = min(max(float(residuals[1:] @ residuals[:-1]) / total, 0.0), MOST_CORRELATION)
    return total / (len(values) - len(change_points)) * (1.0 + correlation) / (1.0 - correlation)
