"""Size of a step: medians of the levels on both sides, with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .noise import MOST_CORRELATION, NORMAL, median
from .seeded import Floats

MEDIAN_DEVIATION = 1.2533
"""Standard error of a median relative to that of a mean of normal values, √(π/2)."""


@dataclass(frozen=True)
class Size:
    """A step between two levels, in the benchmark's unit; the ratio is after / before."""

    before: float
    after: float
    ratio: float | None
    """None if a level is not positive."""
    low: float | None
    high: float | None


def size_of_step(before: Floats, after: Floats, confidence: float = 0.95) -> Size:
    """The size of the step from the level *before* to the level *after*.

    The interval is that of a difference of medians of logarithms: Student's t, with the pooled deviation of both levels
    (by the median absolute deviation), widened for correlation of neighbours. It ignores that the position was found in
    the same values.
    """
    levels = median(before), median(after)
    if min(before.min(), after.min()) <= 0:
        return Size(*levels, ratio=levels[1] / levels[0] if min(levels) > 0 else None, low=None, high=None)
    from scipy.special import stdtrit

    logs = np.log(before), np.log(after)
    centres = median(logs[0]), median(logs[1])
    residuals = np.concatenate((logs[0] - centres[0], logs[1] - centres[1]))
    off = np.abs(residuals)
    # more than half of the values may be equal, as of a coarse clock
    deviation = NORMAL * median(off) or MEDIAN_DEVIATION * float(off.mean())
    error = MEDIAN_DEVIATION * deviation * np.sqrt(1 / len(before) + 1 / len(after)) * _wandering(residuals, deviation)
    half = float(stdtrit(len(residuals) - 2, 0.5 + confidence / 2)) * error if len(residuals) > 2 else np.inf
    centre = centres[1] - centres[0]
    return Size(*levels, *(float(np.exp(min(log, 700.0))) for log in (centre, centre - half, centre + half)))


def _wandering(residuals: Floats, deviation: float) -> float:
    """Return the factor by which correlation widens the interval of a level; outliers count as three deviations."""
    clipped = np.clip(residuals, -3 * deviation, 3 * deviation)
    total = float(clipped @ clipped)
    if not total:
        return 1.0
    correlation = min(max(float(clipped[1:] @ clipped[:-1]) / total, 0.0), MOST_CORRELATION)
    return float(np.sqrt((1 + correlation) / (1 - correlation)))
