"""Series with known steps, by a seed, and the scorer of a method's findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GRID = ((200, 0), (200, 2), (500, 10), (1_000, 0), (1_000, 2), (1_000, 10), (1_000, 20), (2_000, 50))
"""Points and steps; without steps, every finding is false. 500/10 and later ones from 1,000/10 are dense."""
MARGIN = 5
"""Tolerance in points for a step to count as found."""
NOISE, OUTLIERS = 0.03, 0.02
STEP_SIZES = (0.10, 0.40)
OUTLIER_SIZES = (1.2, 3.0)


@dataclass(frozen=True)
class Score:
    """Numbers of true, false and missed steps."""

    hits: int = 0
    false: int = 0
    missed: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.hits + other.hits, self.false + other.false, self.missed + other.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1 if there was nothing to find and nothing was found."""
        wrong = self.false + self.missed
        return 2 * self.hits / (2 * self.hits + wrong) if self.hits or wrong else 1.0


def plant(
    rng: np.random.Generator, base: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return *base* with that many *steps* of STEP_SIZES, randomly up or down, and their positions.

    They are at least a third of the mean distance apart.
    """
    length = len(base)
    gap = max(10, length // (steps + 1) // 3)
    room = rng.dirichlet(np.ones(steps + 1)) * (length - gap * (steps + 1))
    places = (np.cumsum(room)[:-1] + gap * np.arange(1, steps + 1)).astype(np.int64)
    level = np.zeros(length)
    for place in places:
        level[place:] += rng.choice((-1, 1)) * np.log1p(rng.uniform(*STEP_SIZES))
    return base * np.exp(level), places


def synthetic_series(
    rng: np.random.Generator, length: int, steps: int, correlation: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A series with lognormal noise, AR(1) with this *correlation*, and with outliers; and its steps."""
    noise = rng.normal(0.0, NOISE, length)
    for index in range(1, length if correlation else 0):
        noise[index] = correlation * noise[index - 1] + np.sqrt(1 - correlation**2) * noise[index]
    values = 1e-3 * np.exp(noise)
    outliers = rng.random(length) < OUTLIERS
    values[outliers] *= rng.uniform(*OUTLIER_SIZES, outliers.sum())
    return plant(rng, values, steps)


def score(positions: Sequence[int], truth: Sequence[int], margin: int = MARGIN) -> Score:
    """Match *positions* with *truth*: each true step is found by at most one position, the nearest first."""
    pairs = sorted((abs(place - true), place, true) for place in positions for true in truth)
    places: set[int] = set()
    matched: set[int] = set()
    for off, place, true in pairs:
        if off <= margin and place not in places and true not in matched:
            places.add(place)
            matched.add(true)
    return Score(len(matched), len(positions) - len(places), len(truth) - len(matched))
