"""The base beside another arm, at the level at which chance enters: pairs of processes, or groups of builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from formulacode_dagster.models.measurement import Arm, DecisionRule, Sample, Unit

from . import chance
from .intervals import Interval, block_resamples, group_resamples, interval_of

if TYPE_CHECKING:
    from .chance import Array

Samples = Mapping[str, Sequence[Sample]]
"""By benchmark; each has the same arms, builds and rounds as the others."""
FASTER, SLOWER = 1, -1
MOST_MEDIANS = 2.0
"""Huber's bound, 1.35 standard deviations of a normal distribution: where no unit is an outlier, it costs 5 %."""


class Contrast(Protocol):
    """Logarithms of base / arm: the means of each workload, drawn again, and tests of their direction."""

    @property
    def units(self) -> int:
        """Units of the smaller group: what an interval's tails depend on."""

    @property
    def means(self) -> Array:
        """Mean of each workload."""

    @property
    def resampled(self) -> Array:
        """The same drawn again: resamples by workloads."""

    @property
    def spread(self) -> float:
        """Standard deviation of one unit's difference, over the mean of all workloads."""

    def p_value(self, direction: int) -> float:
        """One-sided p-value of the mean over all workloads, FASTER or SLOWER."""

    def corrected(self, direction: int, margin: float = 0.0) -> list[float]:
        """One-sided p-values of each workload going beyond *margin* in *direction*, corrected over all of them."""


def interval(contrast: Contrast, level: float, workload: int | None = None) -> Interval:
    """The *level* interval of the mean over all workloads, or of one; as logarithms."""
    drawn = contrast.resampled.mean(axis=1) if workload is None else contrast.resampled[:, workload]
    return interval_of(drawn, level=level, units=contrast.units)


def contrast_of(samples: Samples, arm: Arm, rule: DecisionRule) -> Contrast:
    """The base beside *arm*; raises ValueError when a sample of either is missing."""
    if not samples:
        raise ValueError("there is nothing to compare without a benchmark")
    make = Paired.of if rule.unit is Unit.PROCESS else Grouped.of
    return make(samples, arm, rule.seed)


def bounded(deviations: Array) -> Array:
    """*deviations* from 0 along the first axis, none more than so many times their median size.

    What slows a core down for a while hits single units, and may be larger than all that the others tell. The bound
    depends on sizes alone, never on signs: what flips them stays exact.
    """
    import numpy as np

    most = MOST_MEDIANS * np.median(np.abs(deviations), axis=0)
    limited: Array = np.clip(deviations, -most, most)
    return limited


@dataclass(frozen=True)
class Paired:
    """Blocks of one process an arm: differences within a block are free of what the machine did meanwhile."""

    units: int
    means: Array
    resampled: Array
    spread: float
    differences: Array
    """Blocks by workloads, as they were sampled; the others are of bounded ones."""
    seed: int

    @classmethod
    def of(cls, samples: Samples, arm: Arm, seed: int) -> Paired:
        """Pair the rounds of the base with those of *arm*."""
        import numpy as np

        columns = []
        for name, taken in samples.items():
            base, other = ({s.round: s.seconds for s in taken if s.arm is side} for side in (Arm.BASE, arm))
            if not base or base.keys() != other.keys():
                raise ValueError(f"{name} needs a sample of {Arm.BASE} and {arm} in each round")
            columns.append([np.log(base[number] / other[number]) for number in sorted(base)])
        if len({len(column) for column in columns}) > 1:
            raise ValueError("every benchmark needs a sample in each round")
        sampled = np.array(columns).T
        differences = bounded(sampled)
        blocks = len(differences)
        spread = float(differences.mean(axis=1).std(ddof=1)) if blocks > 1 else 0.0
        means = differences.mean(axis=0)
        return cls(blocks, means, block_resamples(blocks, seed=seed) @ differences, spread, sampled, seed)

    def p_value(self, direction: int) -> float:
        """Exact, by sign flips of the blocks."""
        blocks = direction * bounded(self.differences).mean(axis=1)
        return chance.sign_flip_p([float(difference) for difference in blocks], seed=self.seed)

    def corrected(self, direction: int, margin: float = 0.0) -> list[float]:
        """On the sign flips of the same blocks."""
        flips = chance.sign_flips(self.units, seed=self.seed)
        return chance.step_down_p(flips, bounded(direction * self.differences - margin))


@dataclass(frozen=True)
class Grouped:
    """Builds of either arm: the layout that one got is its own, so each is one unit however often it ran.

    Builds that were timed in the same rounds form a stratum, in which all of either arm ran in each round: what a round
    did to one arm it did to the other. Builds of an arm with equal objects are one.
    """

    units: int
    means: Array
    resampled: Array
    spread: float
    strata: tuple[tuple[int, int], ...]
    values: Array
    """Mean logarithms of seconds, units by workloads: of each stratum, those of the base and then the other arm's."""
    seed: int

    @classmethod
    def of(cls, samples: Samples, arm: Arm, seed: int) -> Grouped:
        """Group the builds of the base and those of *arm*."""
        import numpy as np

        cells = {side: _cells(samples, side) for side in (Arm.BASE, arm)}
        rounds = {side: {numbers for numbers, _ in cells[side]} for side in cells}
        if not rounds[Arm.BASE] or rounds[Arm.BASE] != rounds[arm]:
            raise ValueError(f"{Arm.BASE} and {arm} need builds that ran in the same rounds")
        if len({len(numbers) for numbers in rounds[arm]}) > 1:
            raise ValueError("every build needs as many rounds as the others")
        blocks: dict[Arm, list[Array]] = {side: [] for side in cells}
        strata = []
        for numbers in sorted(rounds[arm]):
            groups = {side: np.array([cell for at, cell in cells[side] if at == numbers]) for side in cells}
            # what a round did, to all builds in it, is no difference between builds
            pooled = np.concatenate(list(groups.values()))
            deviations = bounded(pooled - np.median(pooled, axis=0))
            strata.append((len(groups[Arm.BASE]), len(groups[arm])))
            for side, block in zip(groups, np.split(deviations, [len(groups[Arm.BASE])]), strict=True):
                blocks[side].append(block)
        whole = {side: np.concatenate(blocks[side]) for side in cells}
        drawn = {}
        for place, (side, group) in enumerate(whole.items()):
            units, taken, workloads = group.shape
            resamples = group_resamples(units, taken, seed=seed + place)
            drawn[side] = resamples @ group.reshape(units * taken, workloads)
        of_units = {side: group.mean(axis=1) for side, group in whole.items()}
        spread = np.sqrt(sum(group.mean(axis=1).var(ddof=1) for group in of_units.values() if len(group) > 1))
        stacked = [block.mean(axis=1) for pair in zip(*blocks.values(), strict=True) for block in pair]
        values = np.concatenate(stacked)
        weights = chance.label_permutations(tuple(strata), seed=seed)
        return cls(
            units=min(map(len, whole.values())),
            means=weights[0] @ values,
            resampled=drawn[Arm.BASE] - drawn[arm],
            spread=float(spread),
            strata=tuple(strata),
            values=values,
            seed=seed,
        )

    def p_value(self, direction: int) -> float:
        """Exact, by exchanging labels of builds within strata."""
        return chance.relabelled_p(self._weights, direction * self.values.mean(axis=1))

    def corrected(self, direction: int, margin: float = 0.0) -> list[float]:
        """On the same permutations."""
        import numpy as np

        values = direction * self.values
        start = 0
        for base, other in self.strata:
            values[start : start + base] -= margin
            stratum = slice(start, start + base + other)
            values[stratum] -= np.mean(values[stratum], axis=0)
            start += base + other
        return chance.step_down_p(self._weights, values)

    @property
    def _weights(self) -> Array:
        return chance.label_permutations(self.strata, seed=self.seed)


def _cells(samples: Samples, arm: Arm) -> list[tuple[tuple[int, ...], Array]]:
    """Rounds of each build, and logarithms of seconds in them by workload; builds with equal objects are averaged."""
    import numpy as np

    by_build: dict[tuple[str, tuple[int, ...]], dict[int, list[list[float]]]] = {}
    names = list(samples)
    seconds = {(name, s.build, s.round): s.seconds for name in names for s in samples[name] if s.arm is arm}
    builds = {s.build: s.objects for s in samples[names[0]] if s.arm is arm}
    for build, objects in sorted(builds.items()):
        rounds = tuple(sorted(number for name, of, number in seconds if of == build and name == names[0]))
        try:
            cell = [[float(np.log(seconds[name, build, number])) for name in names] for number in rounds]
        except KeyError as missing:
            raise ValueError(f"there is no sample of {missing.args[0]}") from None
        by_build.setdefault((objects or f"build {build}", rounds), {})[build] = cell
    return [(rounds, np.mean(list(cells.values()), axis=0)) for (_, rounds), cells in by_build.items()]
