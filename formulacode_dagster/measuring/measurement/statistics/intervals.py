"""Intervals by the bootstrap: blocks are drawn again, each a process or a build of either arm.

Few units make a percentile interval too short. Hesterberg's expanded percentiles take tails of a t distribution in the
place of the normal one's, and make up for the spread of a sample of n being short by n / (n - 1).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from .chance import generator

if TYPE_CHECKING:
    from .chance import Array

RESAMPLES = 2000


class Interval(NamedTuple):
    """Two bounds."""

    low: float
    high: float


@functools.lru_cache(maxsize=64)
def block_resamples(blocks: int, *, seed: int = 0) -> Array:
    """Weights of the mean of *blocks* paired differences, drawn again."""
    drawn = generator(seed).randint(blocks, size=(RESAMPLES, blocks))
    return _counts(drawn, blocks) / blocks


def interval_of(means: Array, *, level: float, units: int) -> Interval:
    """The *level* interval of drawn *means*; *units* is how many there were to draw from."""
    import numpy as np

    if units < 2:
        return Interval(-math.inf, math.inf)
    tail = expanded_tail((1 - level) / 2, units)
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))


def expanded_tail(tail: float, units: int) -> float:
    """The quantile that a percentile interval of *units* has to take for a tail of *tail*."""
    from scipy.special import ndtr, stdtrit

    return float(ndtr(math.sqrt(units / (units - 1)) * stdtrit(units - 1, tail)))


def needed_units(spread: float, margin: float, *, level: float = 0.95) -> int:
    """Return the number of units needed for an interval of *level* within *margin* on each side, given *spread*.

    At least 2; raises ValueError when *margin* is not positive.
    """
    from scipy.special import ndtri, stdtrit

    if margin <= 0:
        raise ValueError("no number of units makes an interval that narrow")
    tail = (1 - level) / 2

    def at_quantile(quantile: float) -> int:
        return max(2, math.ceil((quantile * spread / margin) ** 2))

    units = at_quantile(float(ndtri(tail)))
    # few units need more than the normal distribution says, which settles in some steps
    for _ in range(8):
        again = at_quantile(float(stdtrit(units - 1, tail)))
        if again <= units:
            break
        units = again
    return units


def _counts(drawn: Array, cells: int) -> Array:
    """Count how often each cell was drawn in each row."""
    import numpy as np

    rows = len(drawn)
    flat = (drawn + np.arange(rows)[:, None] * cells).ravel()
    return np.bincount(flat, minlength=rows * cells).reshape(rows, cells).astype(float)
