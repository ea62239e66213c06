"""Exact sign-flip tests, and p-values of single workloads corrected with the same permutations.

Every statistic is a weighted sum of blocks (pairs of processes, or of builds), so a relabelling is a row of weights.
The first row is the observed one, and counts among the rest: p = (1 + count) / (1 + N) if the others are drawn.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]

ENUMERATED_BLOCKS = 32
"""Up to so many all sign flips are counted, half of the blocks at a time; beyond, some are drawn."""
DRAWN_FLIPS = 50_000
MOST_ROWS = 4096
"""Relabellings that single workloads are compared on."""
_TIE = 1e-12
"""Tolerance for sums of the same numbers in another order."""


def sign_flip_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """One-sided p-value of the mean of paired *differences* being above 0, if each had either sign by chance.

    Exact up to ENUMERATED_BLOCKS. Raises ValueError if there is none, or one is not finite.
    """
    import numpy as np

    _require_finite(differences)
    sizes = np.abs(np.asarray(differences, dtype=float))
    observed = math.fsum(differences) - _TIE * float(sizes.sum())
    if len(sizes) > ENUMERATED_BLOCKS:
        drawn = _drawn_signs(len(sizes), DRAWN_FLIPS, seed) @ sizes
        return (1 + int((drawn >= observed).sum())) / (1 + len(drawn))
    first, second = (_signed_sums(half) for half in np.array_split(sizes, 2))
    second.sort()
    reaching = len(second) - np.searchsorted(second, observed - first)
    return float(reaching.sum()) / 2.0 ** len(sizes)


@functools.lru_cache(maxsize=64)
def sign_flips(blocks: int, *, seed: int = 0) -> Array:
    """Weights that give the mean of paired differences under sign flips: all if they are few, else drawn ones."""
    import numpy as np

    if 2**blocks <= MOST_ROWS:
        return np.array(list(itertools.product((1.0, -1.0), repeat=blocks))) / blocks
    observed = np.ones((1, blocks))
    return np.concatenate([observed, _drawn_signs(blocks, MOST_ROWS - 1, seed)]) / blocks


def step_down_p(weights: Array, values: Array) -> list[float]:
    """One-sided p-values of each column of *values* (units by workloads), corrected over all of them.

    Westfall and Young's step-down max-T: the largest statistic against the distribution of the largest of all, the
    second against that of the largest of the others, and so on; dependence among workloads costs nothing.
    """
    import numpy as np

    scale = np.sqrt((values**2).sum(axis=0))
    statistics = (weights @ values) / np.where(scale > 0, scale, 1.0)
    order = np.argsort(-statistics[0], kind="stable")
    corrected = np.empty(len(order))
    highest = 0.0
    # from the least on, the running maximum is that of all which are not larger
    maxima = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    for place, column in enumerate(order):
        share = float((maxima[:, place] >= statistics[0, column] - _TIE).mean())
        highest = max(highest, share)
        corrected[column] = highest
    return [float(p) for p in corrected]


def smallest_sign_flip_p(blocks: int) -> float:
    """The p-value of *blocks* differences that all point the same way: no test of that size can give less."""
    return 2.0**-blocks


def clopper_pearson(hits: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval of a share of which *hits* of *trials* were seen; of 0 or all, it is one-sided."""
    from scipy.special import betaincinv

    if not 0 <= hits <= trials or trials < 1:
        raise ValueError(f"{hits} of {trials} is no share")
    tail = 1 - level if hits in {0, trials} else (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high


def _signed_sums(sizes: Array) -> Array:
    """The sums of *sizes* with every combination of signs."""
    import numpy as np

    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _drawn_signs(blocks: int, rows: int, seed: int) -> Array:
    signs: Array = generator(seed).randint(2, size=(rows, blocks)) * 2.0 - 1.0
    return signs


def generator(seed: int) -> Any:
    """Return a generator with the same stream in every version of numpy, so that stored figures can be recomputed."""
    import numpy as np

    return np.random.RandomState(seed % 2**32)


def _require_finite(values: Sequence[float]) -> None:
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError("a test needs at least one difference, and finite ones")
