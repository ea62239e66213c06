"""The default method: seeded intervals give candidates, an exact penalised fit over these gives the change points.

A positive series is analysed by its logarithm, since noise and steps of benchmarks are relative. Seeded intervals:
Kovács, Bühlmann, Li and Munk, Biometrika 2023. The fit: PELT (Killick, Fearnhead and Eckley, JASA 2012), here over
candidates instead of all positions, which makes it about linear in the length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .noise import local_deviation, long_run_variance, median

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

SHORTEST_SEGMENT = 3
"""Points of the shortest level: the outlier filter removes shorter ones."""
PENALTY = 5.0
"""Required gain of a change point, in variances, per unit of the logarithm of the length."""
CANDIDATE_SHARE = 0.5
"""The share of the penalty that makes a position a candidate: intervals see a step together with its neighbours."""
OUTLIER_WINDOW = 5
OUTLIER_DEVIATIONS = 4.0
SPELL_SHARE = 0.3
"""Share of the mean level length: a shorter level from which the series returns is a burst of noise."""
LONGEST_SPELL = (12, 20)
"""Bounds of that length, in points: anything shorter is always a burst, anything longer never."""
ROUNDS = 2
"""Number of re-estimates of the noise from the residuals of the fit."""
LEAST_NOISE = 1e-3
"""Noise of a series of exactly repeated values, such as memory; relative if the series is positive."""


def change_points(values: Floats) -> Positions:
    """The positions at which *values* (finite, in order) begin a new level; noise is estimated from them."""
    length = len(values)
    if length < 2 * SHORTEST_SEGMENT:
        return np.empty(0, np.int64)
    scaled = _scaled(values)
    noise = np.maximum(local_deviation(scaled), LEAST_NOISE)
    scaled = without_outliers(scaled, OUTLIER_DEVIATIONS * noise)
    scaled -= scaled.mean()
    weights = noise**-2
    sums = _Sums(running_sum(weights * scaled), running_sum(weights))
    penalty = PENALTY * float(np.log(length))
    fitted = _penalised_fit(sums, _candidates(sums, CANDIDATE_SHARE * penalty), penalty)
    for _ in range(ROUNDS):
        if not len(fitted):
            break
        # correlated noise looks like steps if neighbours are assumed independent
        variance = max(long_run_variance(scaled, noise, fitted), 1.0)
        fitted = _penalised_fit(sums, fitted, penalty * variance)
    return _without_spells(scaled, _refined(sums, fitted))


@dataclass(frozen=True)
class _Sums:
    """Running sums, from 0: of values times weights, and of weights."""

    values: Floats
    weights: Floats

    def __len__(self) -> int:
        return len(self.values) - 1

    def explained(self, first: Positions | int, last: Positions | int) -> Floats:
        """Return the weighted sum of squares of one level from *first* up to *last*."""
        part: Floats = (self.values[last] - self.values[first]) ** 2 / (self.weights[last] - self.weights[first])
        return part


def without_outliers(values: Floats, threshold: Floats) -> Floats:
    """Replace values further than *threshold* from the median of their neighbours by that median (Hampel)."""
    half = OUTLIER_WINDOW // 2
    padded = np.concatenate((values[half:0:-1], values, values[-2 : -2 - half : -1]))
    neighbours = np.stack([padded[shift : shift + len(values)] for shift in range(OUTLIER_WINDOW)])
    neighbours.sort(axis=0)
    medians = neighbours[half]
    return np.where(np.abs(values - medians) > threshold, medians, values)


def _scaled(values: Floats) -> Floats:
    if values.min() > 0:
        return np.log(values)
    return values / (np.median(np.abs(values)) or np.abs(values).max() or 1.0)


def running_sum(values: Floats) -> Floats:
    """The sums of the first 0, 1, … of *values*."""
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    np.cumsum(values, out=sums[1:])
    return sums


@lru_cache(maxsize=64)
def _seeded_intervals(length: int) -> tuple[tuple[Positions, int], ...]:
    """Per layer the starts of its intervals, and their length: half of the layer's before, twice as many and one."""
    layers = []
    size = length
    while size >= 2 * SHORTEST_SEGMENT:
        count = 2 * -(-length // size) - 1
        layers.append((np.unique(np.linspace(0, length - size, count).astype(np.int64)), size))
        size = (size + 1) // 2
    return tuple(layers)


def _candidates(sums: _Sums, least_gain: float) -> Positions:
    """Return the best split of each interval, if it gains more than *least_gain*."""
    places = []
    for starts, size in _seeded_intervals(len(sums)):
        inside = starts[:, None] + np.arange(SHORTEST_SEGMENT, size - SHORTEST_SEGMENT + 1)
        first, last = starts[:, None], starts[:, None] + size
        gains = sums.explained(first, inside) + sums.explained(inside, last)
        best = gains.argmax(axis=1)
        rows = np.arange(len(starts))
        split = gains[rows, best] - sums.explained(starts, starts + size) > least_gain
        places.append(inside[rows, best][split])
    return np.unique(np.concatenate(places))


def _penalised_fit(sums: _Sums, candidates: Positions, penalty: float) -> Positions:
    """The subset of *candidates* with the least squared error plus *penalty* for each: exact, and pruned as PELT does.

    The squares themselves are the same for every subset and left out.
    """
    positions = np.concatenate(([0], candidates, [len(sums)]))
    at = _Sums(sums.values[positions], sums.weights[positions])
    costs = np.full(len(positions), -penalty)
    previous = np.zeros(len(positions), np.int64)
    active = np.zeros(1, np.int64)
    for end in range(1, len(positions)):
        too_short = positions[end] - positions[active] < SHORTEST_SEGMENT
        reached = costs[active] - at.explained(active, end)
        reached[too_short] = np.inf
        best = int(reached.argmin())
        costs[end] = reached[best] + penalty
        previous[end] = active[best]
        active = np.append(active[(reached <= costs[end]) | too_short], end)
    fitted = []
    end = int(previous[-1])
    while end:
        fitted.append(int(positions[end]))
        end = int(previous[end])
    return np.array(fitted[::-1], np.int64)


def _refined(sums: _Sums, fitted: Positions) -> Positions:
    """Return *fitted*, each moved to the best split between its neighbours."""
    bounds = np.concatenate(([0], fitted, [len(sums)]))
    for index in range(1, len(bounds) - 1):
        first, last = int(bounds[index - 1]), int(bounds[index + 1])
        places = np.arange(first + SHORTEST_SEGMENT, last - SHORTEST_SEGMENT + 1)
        bounds[index] = places[(sums.explained(first, places) + sums.explained(places, last)).argmax()]
    return bounds[1:-1]


def _without_spells(values: Floats, fitted: Positions) -> Positions:
    """*fitted* without the two ends of each short level from which *values* return at least half of the way.

    A change reverted within few points, compared with the other levels of the series, cannot be told from another
    process on the machine; the shortest are removed first.
    """
    bounds = [0, *fitted.tolist(), len(values)]
    levels = [median(values[first:last]) for first, last in pairwise(bounds)]
    while True:
        longest = min(max(SPELL_SHARE * len(values) / len(levels), LONGEST_SPELL[0]), LONGEST_SPELL[1])
        spells = [
            (bounds[place + 1] - bounds[place], place)
            for place in range(1, len(levels) - 1)
            if bounds[place + 1] - bounds[place] <= longest
            and 2 * abs(levels[place + 1] - levels[place - 1]) <= abs(levels[place] - levels[place - 1])
        ]
        if not spells:
            return np.array(bounds[1:-1], np.int64)
        _, place = min(spells)
        del bounds[place : place + 2], levels[place : place + 2]
        levels[place - 1] = median(values[bounds[place - 1] : bounds[place]])
