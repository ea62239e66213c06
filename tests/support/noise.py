"""Samples as on shared machines: drift, skewed noise, spikes; each build draws new layouts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.statistics.contrasts import Samples
from formulacode_dagster.measuring.measurement.statistics.verdict import TaskVerdict, judge, taken_by
from formulacode_dagster.models.measurement import Arm, DecisionRule, RandomizationUnit, Sample

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

    def judged(
        self, generator: random.Random, unit: RandomizationUnit, plan: SamplingPlan | None = None
    ) -> tuple[TaskVerdict, int]:
        """Decisions of the plan's interim analyses, one after the other, and the deciding one."""
        rule = (plan or SamplingPlan()).rule(unit)
        taken = self._samples(generator, rule)
        for look, at in enumerate(rule.looks):
            judged = judge({name: taken_by(at, samples) for name, samples in taken.items()}, rule, look)
            if judged.is_decided:
                break
        return judged, look

    def _samples(self, generator: random.Random, rule: DecisionRule) -> Samples:
        taken: dict[str, list[Sample]] = {f"bench.time_{number}": [] for number in range(self.workloads)}
        slope = generator.gauss(0, self.drift)
        for number in range(rule.looks[-1].units):
            machine = slope * number / 8 + generator.gauss(0, self.drift)
            for arm in Arm:
                layout = self.layout(generator)
                for place, samples in enumerate(taken.values()):
                    effect = math.log(self.speedup) * (arm is Arm.ORACLE) * (-1 if place in self.slower else 1)
                    spike = generator.uniform(1.2, 2.0) if generator.random() < 0.01 else 1.0
                    noise = generator.gauss(0, self.noise) + generator.expovariate(2 / (self.noise + 1e-9))
                    samples.append(
                        Sample(
                            arm=arm,
                            build=number,
                            objects=f"{arm}-{number}",
                            round=number,
                            order=0,
                            value=spike * math.exp(machine + layout + noise - effect),
                            calls=10,
                        )
                    )
        return taken
