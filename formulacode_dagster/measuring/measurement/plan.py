"""The sampling plan: number of samples and interim analyses, fixed before the first sample."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pydantic import Field, model_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import DecisionRule, InterimAnalysis, Metric, RandomizationUnit

from .statistics.chance import smallest_sign_flip_p

RULE_VERSION = "4"
"""Raise it when the same samples may be judged otherwise."""
LOOKS = (
    # half the blocks of a claim suffice to see futility
    InterimAnalysis(units=4, alpha=0),
    InterimAnalysis(units=8, alpha=0.004),
    InterimAnalysis(units=12, alpha=0.003),
    InterimAnalysis(units=18, alpha=0.002),
    InterimAnalysis(units=24, alpha=0.001),
)


class SamplingPlan(Frozen):
    """The effort spent on one task, and the rule by which it is judged.

    The error probability of calling a patch without effect faster is spent over the interim analyses, and bounded by
    their sum. A clear effect ends at the first analysis with alpha, a clear absence at any analysis; an unclear one
    continues to the last, or to the end of the time.
    """

    looks: tuple[InterimAnalysis, ...] = Field(
        default=LOOKS, description="rounds of processes, for pure Python; builds an arm, for compiled code"
    )
    max_benchmarks: int = Field(default=24, ge=1, description="benchmarks timed, of those that execute the change")
    max_seconds: float = Field(
        default=600.0, gt=0, description="seconds that surveys, warm-up and rounds of a task may take, builds apart"
    )
    claim_share: float = Field(
        default=0.15, gt=0, le=1, description="share of that for the rounds up to the first claim: the fewer are timed"
    )
    least_benchmarks: int = Field(default=8, ge=1, description="benchmarks timed however long these rounds then take")
    max_build_seconds: float = Field(
        default=14_400.0, gt=0, description="seconds after which no more builds of a task are begun"
    )
    max_survey_seconds: float = Field(default=60.0, gt=0, description="seconds an arm for running each benchmark once")
    seconds_per_sample: float = Field(default=0.05, gt=0, description="seconds of timing in one process, warm-up apart")
    single_call_seconds: float = Field(
        default=1.0, gt=0, description="a benchmark whose one call takes longer is called once a process"
    )
    max_steal: float = Field(default=0.05, description="a round is disturbed if the hypervisor took more of its core")
    max_others: float = Field(default=0.10, description="… or if other processes took more of its core")
    max_repeats: int = Field(default=2, ge=0, description="disturbed rounds that are taken again")
    at_once: bool = Field(
        default=True, description="whether the arms of a round run at the same time, unless a call waits for something"
    )
    instructions_share: float = Field(
        default=0.25,
        ge=0,
        description="CPU seconds for counting instructions, as a share of the measurement; 0: none",
    )
    more_share: float = Field(
        default=0.5,
        ge=0,
        description="share of the seconds that is added once, if they end undecided and the patch clearly takes fewer "
        "instructions",
    )
    seed: int = Field(default=0, description="of the order of the samples and the choice of benchmarks")

    def rule(self, unit: RandomizationUnit, metrics: Collection[Metric] = (Metric.TIME,)) -> DecisionRule:
        """Return the rule for *metrics* with this randomization unit: each has an equal share of the levels."""
        return DecisionRule(
            version=RULE_VERSION,
            unit=unit,
            looks=_shared(self.looks, len(metrics)),
            metrics=tuple(metric for metric in Metric if metric in metrics),
            seed=self.seed,
        )

    @model_validator(mode="after")
    def _can_ever_be_significant(self) -> SamplingPlan:
        blocks = [look.units for look in self.looks]
        if blocks != sorted(set(blocks)):
            raise ValueError("each look needs more units than the one before")
        if not self.looks[-1].alpha:
            raise ValueError("the last interim analysis needs an alpha, or no claim would be possible")
        for look in self.looks:
            if look.alpha and (least := smallest_sign_flip_p(look.units)) > look.alpha:
                raise ValueError(
                    f"{look.units} units can never reach p <= {look.alpha}, "
                    f"only {least:.4f}: take more of them, or spend more on this look"
                )
        return self


def _shared(looks: Sequence[InterimAnalysis], parts: int) -> tuple[InterimAnalysis, ...]:
    """Return *looks* with one of equal *parts* of their levels; levels unreachable for a test move to the next."""
    shared, carried = [], 0.0
    for look in looks:
        alpha = look.alpha / parts + carried
        is_spent = look is looks[-1] or smallest_sign_flip_p(look.units) <= alpha
        carried = 0.0 if is_spent else alpha
        shared.append(look.model_copy(update={"alpha": alpha if is_spent else 0.0}))
    return tuple(shared)
