"""Contrasts of the base with another arm, in randomization blocks: pairs of processes, or of builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from formulacode_dagster.models.measurement import Arm, DecisionRule, Quantity, RandomizationUnit, Sample

from . import chance
from .intervals import Interval, block_resamples, interval_of

if TYPE_CHECKING:
    from .chance import Array

Samples = Mapping[str, Sequence[Sample]]
"""By benchmark; each has the same arms and rounds as the others."""
Quantities = Mapping[str, Quantity]
"""Metric of each benchmark; seconds if not named."""
FASTER, SLOWER = 1, -1
MOST_MEDIANS = 2.0
"""Huber's bound, 1.35 standard deviations of a normal distribution: without outliers it costs 5 % efficiency."""


@dataclass(frozen=True)
class Contrast:
    """Logarithms of base / arm (of rates arm / base), a block a process or build of either.

    They are free of common effects of the machine.
    """

    units: int
    means: Array
    """By workload."""
    resampled: Array
    """The same drawn again: resamples by workloads."""
    differences: Array
    """Blocks by workloads, as they were sampled; the others are of bounded ones."""
    seed: int

    @property
    def spread(self) -> float:
        """Standard deviation of one block's difference, over the mean of all workloads."""
        return float(bounded(self.differences).mean(axis=1).std(ddof=1)) if self.units > 1 else 0.0

    def of(self, workloads: Sequence[int]) -> Contrast:
        """The same of some of the workloads, by their places."""
        places = list(workloads)
        return replace(
            self,
            means=self.means[places],
            resampled=self.resampled[:, places],
            differences=self.differences[:, places],
        )

    def p_value(self, direction: int) -> float:
        """One-sided p-value of the mean over all workloads, FASTER or SLOWER: exact, by sign flips of the blocks."""
        blocks = direction * bounded(self.differences).mean(axis=1)
        return chance.sign_flip_p([float(difference) for difference in blocks], seed=self.seed)

    def corrected(self, direction: int, margin: float = 0.0) -> list[float]:
        """One-sided p-values of each workload going beyond *margin* in *direction*, corrected on the same flips."""
        flips = chance.sign_flips(self.units, seed=self.seed)
        return chance.step_down_p(flips, bounded(direction * self.differences - margin))


def contrast_of(samples: Samples, arm: Arm, rule: DecisionRule, quantities: Quantities) -> Contrast:
    """Contrast the base with *arm*, oriented so that better is larger; raises ValueError if a sample of either is
    missing.
    """
    import numpy as np

    if not samples:
        raise ValueError("there is nothing to compare without a benchmark")
    columns = []
    for name, taken in samples.items():
        base, other = ({s.round: s.value for s in taken if s.arm is side} for side in (Arm.BASE, arm))
        if not base or base.keys() != other.keys():
            raise ValueError(f"{name} needs a sample of {Arm.BASE} and {arm} in each round")
        better = -1 if name in quantities and quantities[name].is_rate else 1
        columns.append([better * np.log(base[number] / other[number]) for number in sorted(base)])
    if len({len(column) for column in columns}) > 1:
        raise ValueError("every benchmark needs a sample in each round")
    sampled = np.array(columns).T
    if rule.unit is RandomizationUnit.BUILD:
        sampled = np.array([sampled[places].mean(axis=0) for places in _sharing(next(iter(samples.values())), arm)])
    differences = bounded(sampled)
    blocks = len(differences)
    return Contrast(
        units=blocks,
        means=differences.mean(axis=0),
        resampled=block_resamples(blocks, seed=rule.seed) @ differences,
        differences=sampled,
        seed=rule.seed,
    )


def interval(contrast: Contrast, level: float, workload: int | None = None) -> Interval:
    """The *level* interval of the mean over all workloads, or of one; as logarithms."""
    drawn = contrast.resampled.mean(axis=1) if workload is None else contrast.resampled[:, workload]
    return interval_of(drawn, level=level, units=contrast.units)


def bounded(deviations: Array) -> Array:
    """*deviations* from 0 along the first axis, none more than so many times their median size.

    A slow period of a core hits single units, and can exceed everything else. The bound depends on sizes, never on
    signs, so sign flips stay exact.
    """
    import numpy as np

    most = MOST_MEDIANS * np.median(np.abs(deviations), axis=0)
    limited: Array = np.clip(deviations, -most, most)
    return limited


def _sharing(taken: Sequence[Sample], arm: Arm) -> list[list[int]]:
    """Places of the rounds, in order; those together in which base or *arm* ran a binary of each other's.

    Equal objects are one sample of layouts, however often they were built or run: dependent blocks are merged, so that
    one sign flips both.
    """
    objects: dict[int, set[str]] = {}
    for sample in taken:
        if sample.arm in {Arm.BASE, arm}:
            objects.setdefault(sample.round, set()).add(sample.objects)
    units: list[tuple[set[str], list[int]]] = []
    for place, number in enumerate(sorted(objects)):
        binaries, places = objects[number] - {""}, [place]
        for unit in [unit for unit in units if unit[0] & binaries]:
            units.remove(unit)
            binaries, places = binaries | unit[0], unit[1] + places
        units.append((binaries, places))
    return [places for _, places in units]
