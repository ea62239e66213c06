"""Intervals of shares."""

from __future__ import annotations


def clopper_pearson(hits: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share of which *hits* of *trials* were seen (Clopper and Pearson 1934)."""
    from scipy.stats import beta

    tail = (1 - level) / 2
    low = float(beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high
