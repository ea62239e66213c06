"""How many samples are taken and when they may decide: all of it fixed before the first is taken."""

from __future__ import annotations

import itertools

from pydantic import Field, model_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import DecisionRule, Look, Unit

from .chance import smallest_label_p, smallest_sign_flip_p

RULE_VERSION = "3"
"""Raise it when the same samples may be judged otherwise."""
PROCESS_LOOKS = (
    # half the rounds that a claim needs are enough to see that there is nothing to claim
    Look(units=4, alpha=0),
    Look(units=8, alpha=0.004),
    Look(units=12, alpha=0.003),
    Look(units=18, alpha=0.002),
    Look(units=24, alpha=0.001),
)
BUILD_LOOKS = (
    Look(units=5, alpha=0.004),
    Look(units=5, processes=3, alpha=0.004),
    Look(units=7, processes=3, alpha=0.002),
)


class SamplingPlan(Frozen):
    """The effort spent on one task, and the rule by which it is judged.

    The chance to call a patch without effect faster is spent over the looks, and bounded by their sum. A clear effect
    ends at the first that has some of it, and what excludes any effect at whichever look comes next; an unclear one
    goes on up to the last, or to the end of the time.
    """

    process_looks: tuple[Look, ...] = Field(default=PROCESS_LOOKS, description="rounds of processes, for pure Python")
    build_looks: tuple[Look, ...] = Field(default=BUILD_LOOKS, description="builds an arm, for compiled code")
    max_benchmarks: int = Field(default=24, ge=1, description="benchmarks timed, of those that execute the change")
    max_seconds: float = Field(
        default=600.0, gt=0, description="seconds that surveys, warm-up and rounds of a task may take, builds apart"
    )
    max_survey_seconds: float = Field(default=60.0, gt=0, description="seconds an arm for running each benchmark once")
    seconds_per_sample: float = Field(default=0.1, gt=0, description="seconds of timing in one process, warm-up apart")
    single_call_seconds: float = Field(
        default=1.0, gt=0, description="a benchmark whose one call takes longer is called once a process"
    )
    max_steal: float = Field(default=0.05, description="a round is disturbed if the hypervisor took more of its core")
    max_others: float = Field(default=0.10, description="… or if other processes took more of its core")
    max_repeats: int = Field(default=2, ge=0, description="disturbed rounds that are taken again")
    seed: int = Field(default=0, description="of the order of the samples and the choice of benchmarks")

    def rule(self, unit: Unit) -> DecisionRule:
        """How samples with this unit of chance are judged."""
        looks = self.process_looks if unit is Unit.PROCESS else self.build_looks
        return DecisionRule(version=RULE_VERSION, unit=unit, looks=looks, seed=self.seed)

    @model_validator(mode="after")
    def _can_ever_be_significant(self) -> SamplingPlan:
        for unit in Unit:
            looks = self.rule(unit).looks
            steps = [(look.units, look.processes) for look in looks]
            if steps != sorted(set(steps)):
                raise ValueError("each look needs more units than the one before, or more processes of each")
            if not looks[-1].alpha:
                raise ValueError("the last look needs an alpha, or nothing could be claimed")
            for place, look in enumerate(looks):
                if look.alpha and (least := smallest_p(unit, looks[: place + 1])) > look.alpha:
                    raise ValueError(
                        f"{look.units} units of {unit} can never reach p <= {look.alpha}, "
                        f"only {least:.4f}: take more of them, or spend more on this look"
                    )
        return self


def smallest_p(unit: Unit, looks: tuple[Look, ...]) -> float:
    """The p-value of full separation at the last of *looks*: nothing that is seen by then can give less."""
    if unit is Unit.PROCESS:
        return smallest_sign_flip_p(looks[-1].units)
    units = sorted({0, *(look.units for look in looks)})
    return smallest_label_p([later - earlier for earlier, later in itertools.pairwise(units)])
