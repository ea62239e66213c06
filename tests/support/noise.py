"""Samples as shared machines give them: drift, skewed noise, spikes; layouts that each build draws anew."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from formulacode_dagster.measurement.contrasts import Samples
from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.measurement.verdict import Judged, judge, taken_by
from formulacode_dagster.models.measurement import Arm, DecisionRule, Sample, Unit

Layout = Callable[[random.Random], float]
"""Logarithm of what the layout of one build does to its time."""


def no_layout(_: random.Random) -> float:
    """Pure Python has none."""
    return 0.0


@dataclass(frozen=True)
class SimulatedTask:
    """A patch with a true effect, on so many workloads."""

    speedup: float = 1.0
    workloads: int = 4
    noise: float = 0.02
    layout: Layout = no_layout
    drift: float = 0.03
    slower: Sequence[int] = ()
    """Workloads that are as much slower as the others are faster."""

    def judged(self, generator: random.Random, unit: Unit, plan: SamplingPlan | None = None) -> tuple[Judged, int]:
        """What the plan's looks decide, one after the other, and at which."""
        rule = (plan or SamplingPlan()).rule(unit)
        taken = self._samples(generator, rule)
        for look, at in enumerate(rule.looks):
            judged = judge({name: taken_by(at, samples, rule) for name, samples in taken.items()}, rule, look)
            if judged.is_decided:
                break
        return judged, look

    def _samples(self, generator: random.Random, rule: DecisionRule) -> Samples:
        taken: dict[str, list[Sample]] = {f"bench.time_{number}": [] for number in range(self.workloads)}
        units, rounds = rule.looks[-1].units, rule.looks[-1].processes
        if rule.unit is Unit.PROCESS:
            blocks = [([0], number) for number in range(units)]
        else:
            ends = sorted({0, *(look.units for look in rule.looks)})
            strata = [list(range(start, end)) for start, end in itertools.pairwise(ends)]
            blocks = [(stratum, place * rounds + n) for place, stratum in enumerate(strata) for n in range(rounds)]
        layouts = {(arm, build): self.layout(generator) for arm in Arm for build in range(units)}
        slope = generator.gauss(0, self.drift)
        for builds, number in blocks:
            machine = slope * number / 8 + generator.gauss(0, self.drift)
            for arm in Arm:
                for build in builds:
                    for place, samples in enumerate(taken.values()):
                        effect = math.log(self.speedup) * (arm is Arm.ORACLE) * (-1 if place in self.slower else 1)
                        spike = generator.uniform(1.2, 2.0) if generator.random() < 0.01 else 1.0
                        noise = generator.gauss(0, self.noise) + generator.expovariate(2 / (self.noise + 1e-9))
                        logarithm = machine + layouts[arm, build] + noise - effect
                        samples.append(
                            Sample(
                                arm=arm,
                                build=build,
                                objects=f"{arm}-{build}",
                                round=number,
                                order=0,
                                seconds=spike * math.exp(logarithm),
                                calls=10,
                            )
                        )
        return taken
