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
    single calls of all do not fit either, those that come first in the seeded order of *candidates* do, past what alone
    takes more than there is; where each does, the quickest is timed for as long as there is time. More *seconds* than
    the plan's, as what is measured again has, leave less out, and make no sample longer.
    """
    processes = rule.first_claim.units * len(Arm)
    share = seconds / processes - overhead
    costs = [
        calls[candidate.name] + (0.0 if is_single_call(candidate, plan) else TIMING_FACTOR * LEAST_SECONDS)
        for candidate in candidates
    ]
    fitting: list[Candidate] = []
    room = share
    for candidate, cost in zip(candidates, costs, strict=True):
        if cost <= room:
            fitting.append(candidate)
            room -= cost
    if not fitting:
        fitting.append(candidates[costs.index(min(costs))])
    untimed = [candidate.name for candidate in candidates if candidate not in fitting]
    batched = sum(not is_single_call(candidate, plan) for candidate in fitting)
    room = min(seconds, plan.max_seconds) / processes - overhead - sum(calls[candidate.name] for candidate in fitting)
    each = min(plan.seconds_per_sample, max(LEAST_SECONDS, room / (TIMING_FACTOR * max(1, batched))))
    return Fitted(fitting, untimed, each)


def is_single_call(candidate: Candidate, plan: SamplingPlan) -> bool:
    """Whether one call a process has to do: for what its survey took, or as it is no time that is measured."""
    return candidate.quantity.metric is not Metric.TIME or (
        max(surveyed.seconds for surveyed in candidate.by_arm.values()) > plan.single_call_seconds
    )
