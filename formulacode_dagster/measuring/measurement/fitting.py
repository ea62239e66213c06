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
    """What of *candidates*, in their seeded order, is timed, and for how long a sample.

    The plan's least are timed, and the next ones as long as its share of the time for the rounds up to the first claim
    suffices: a task is to be cheap, and each further one says less about the whole. Each is timed for less where not
    all of these fit into *seconds* up to the first claim; where single calls of all do not fit either, those that come
    first do, past what alone takes more than there is; where each does, the quickest is timed for as long as there is
    time. More *seconds* than the plan's, as what is measured again has, leave less out, and make no sample longer.
    *calls* are the seconds of one call with its setup, by name, and *overhead* those of a process beside them.
    """
    processes = rule.first_claim.units * len(Arm)
    share = seconds / processes - overhead
    costs = [
        calls[candidate.name] + (0.0 if is_single_call(candidate, plan) else TIMING_FACTOR * LEAST_SECONDS)
        for candidate in candidates
    ]
    fitting: list[Candidate] = []
    room, cheap = share, plan.claim_share * plan.max_seconds / processes - overhead
    for candidate, cost in zip(candidates, costs, strict=True):
        whole = calls[candidate.name]
        if not is_single_call(candidate, plan):
            whole += calls[candidate.name] + TIMING_FACTOR * plan.seconds_per_sample
        # not the quicker ones that come after it: what is timed is not to be chosen by how long it takes
        if len(fitting) >= plan.least_benchmarks and whole > cheap:
            break
        if cost <= room:
            fitting.append(candidate)
            room, cheap = room - cost, cheap - whole
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
