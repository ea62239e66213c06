"""The statistics of samples: exact, and free of distribution assumptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Exact two-sided p-value of the Mann-Whitney test, ties included.

    The permutation distribution of the rank sum (midranks for ties) is counted in full, never approximated; the p-value
    is twice the smaller tail, at most 1. Raises ValueError when a side is empty or holds a value that is not finite.
    """
    if not first or not second:
        raise ValueError("a test needs at least one sample on either side")
    if not all(math.isfinite(value) for value in (*first, *second)):
        raise ValueError("a test needs finite samples")
    ranks = _doubled_midranks([*first, *second])
    observed = sum(ranks[: len(first)])
    counts = _rank_sum_counts(tuple(sorted(ranks)), len(first))
    total = sum(counts.values())
    lower = sum(count for value, count in counts.items() if value <= observed)
    upper = sum(count for value, count in counts.items() if value >= observed)
    return min(1.0, float(2 * Fraction(min(lower, upper), total)))


def smallest_p_value(per_side: int) -> float:
    """The p-value of two fully separated sides of *per_side* samples: no test of that size can give less."""
    return 2 / math.comb(2 * per_side, per_side)


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    """Twice the midrank of each value, so that halves stay whole numbers."""
    order = sorted(values)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for place, value in enumerate(order, start=1):
        first.setdefault(value, place)
        last[value] = place
    return [first[value] + last[value] for value in values]


@lru_cache(maxsize=256)
def _rank_sum_counts(ranks: tuple[int, ...], size: int) -> dict[int, int]:
    """How many subsets of *size* of the ranks have each sum."""
    by_size: list[dict[int, int]] = [{0: 1}] + [{} for _ in range(size)]
    for rank in ranks:
        for chosen in range(size, 0, -1):
            target = by_size[chosen]
            for value, count in by_size[chosen - 1].items():
                target[value + rank] = target.get(value + rank, 0) + count
    return by_size[size]


def cliffs_delta(before: Sequence[float], after: Sequence[float]) -> float:
    """How surely *after* is below *before*, from -1 to 1: 1 when every value of *after* is."""
    larger = sum(old > new for old in before for new in after)
    smaller = sum(old < new for old in before for new in after)
    return (larger - smaller) / (len(before) * len(after))


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean that treats twice as fast and half as fast as opposites; 1.0 of nothing."""
    if not ratios:
        return 1.0
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: p-values that may be compared with alpha although many tests were made."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = highest
    return corrected
