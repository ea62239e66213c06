"""What of the benchmarks fits into the time, by what a call of each took while warming up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formulacode_dagster.models.measurement import Arm, DecisionRule, Metric

from .plan import SamplingPlan
from .relevance import Candidate

LEAST_SECONDS = 0.005
"""Of timing in one process: below, it is noise of the timer."""
TIMING_FACTOR = 2.0
"""Warm-up and timing of a sample take about so many times the seconds that it is timed for."""


@dataclass(frozen=True)
class Fitted:
    """What is timed, for so many seconds in one process, and names of what there is no time for."""

    candidates: list[Candidate]
    untimed: list[str]
    seconds: float


def fit(
    candidates: Sequence[Candidate],
    calls: Mapping[str, float],
    overhead: float,
    plan: SamplingPlan,
    rule: DecisionRule,
    *,
    seconds: float,
) -> Fitted:
    """Time each for less where not all fit into *seconds* up to the first claim, and leave out what still does not.

    *calls* are the seconds of one call with its setup, by name, and *overhead* those of a process beside them. Where
    single calls of all do not fit either, those that come first in the seeded order of *candidates* do, whatever they
    take; the first one always does.
    """
    share = seconds / (rule.first_claim.units * len(Arm)) - overhead
    fitting: list[Candidate] = []
    room = share
    for candidate in candidates:
        cost = calls[candidate.name] + (0.0 if is_single_call(candidate, plan) else TIMING_FACTOR * LEAST_SECONDS)
        if cost <= room or not fitting:
            fitting.append(candidate)
            room -= cost
    untimed = [candidate.name for candidate in candidates if candidate not in fitting]
    batched = sum(not is_single_call(candidate, plan) for candidate in fitting)
    room = share - sum(calls[candidate.name] for candidate in fitting)
    each = min(plan.seconds_per_sample, max(LEAST_SECONDS, room / (TIMING_FACTOR * max(1, batched))))
    return Fitted(fitting, untimed, each)


def is_single_call(candidate: Candidate, plan: SamplingPlan) -> bool:
    """Whether one call a process has to do: for what its survey took, or as it is no time that is measured."""
    return candidate.quantity.metric is not Metric.TIME or (
        max(surveyed.seconds for surveyed in candidate.by_arm.values()) > plan.single_call_seconds
    )
