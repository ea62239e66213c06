"""How many samples of which side are taken, and in what order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

from pydantic import Field, model_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import Side

from .statistics import smallest_p_value
from .verdict import ALPHA

MIN_ROUNDS = 7
"""Below seven samples a side, even fully separated sides are no proof."""

T = TypeVar("T")


class SamplingPlan(Frozen):
    """The effort spent on one task."""

    rounds: int = Field(default=MIN_ROUNDS, ge=MIN_ROUNDS, description="samples a side of each benchmark")
    max_benchmarks: int = Field(default=24, ge=1, description="benchmarks timed, of those that execute the change")
    max_seconds: float = Field(
        default=900.0, gt=0, description="seconds of timing a task may take; fewer benchmarks then"
    )
    max_survey_seconds: float = Field(default=300.0, gt=0, description="seconds a side for running each benchmark once")
    seconds_per_sample: float = Field(default=0.1, gt=0, description="seconds of timing in one process, warm-up apart")
    seed: int = Field(default=0, description="of the order of the samples and the choice of benchmarks")

    @model_validator(mode="after")
    def _can_ever_be_significant(self) -> SamplingPlan:
        reachable = smallest_p_value(self.rounds) * self.max_benchmarks
        if reachable >= ALPHA:
            raise ValueError(
                f"{self.rounds} rounds of {self.max_benchmarks} benchmarks can never reach p < {ALPHA} corrected: "
                f"take fewer benchmarks or more rounds"
            )
        return self


def interleave(benchmarks: Sequence[T], *, rounds: int, seed: int) -> Iterator[list[tuple[T, Side]]]:
    """Yield the order of each round: every benchmark on every side once.

    Benchmarks are shuffled in each round; the sides of one stand next to each other, so that a drifting machine treats
    them alike, and go through all six orders in turn, so that none is always first.
    """
    generator = random.Random(seed)  # noqa: S311 - an order, not a secret
    orders = [generator.sample(list(itertools.permutations(Side)), 6) for _ in benchmarks]
    for number in range(rounds):
        if number % 6 == 0:
            for order in orders:
                generator.shuffle(order)
        places = generator.sample(range(len(benchmarks)), len(benchmarks))
        yield [(benchmarks[place], side) for place in places for side in orders[place][number % 6]]
