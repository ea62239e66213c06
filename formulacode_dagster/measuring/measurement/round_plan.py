"""Fits benchmarks into the time limit, by the duration of their calls during warm-up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from formulacode_dagster.models.measurement import Arm, DecisionRule, Metric

from .plan import SamplingPlan
from .relevance import BenchmarkCandidate

LEAST_SECONDS = 0.005
"""Minimum timing in one process, in seconds: below, the timer's noise dominates."""
TIMING_FACTOR = 2.0
"""Warm-up and timing of a sample take about so many times the seconds that it is timed for."""


@dataclass(frozen=True)
class Fitted:
    """Selected benchmarks with their seconds in one process, and the names of those without time."""

    candidates: list[BenchmarkCandidate]
    untimed: list[str]
    seconds: float


def fit(
    candidates: Sequence[BenchmarkCandidate],
    calls: Mapping[str, float],
    single: Collection[str],
    overhead: float,
    plan: SamplingPlan,
    rule: DecisionRule,
    *,
    seconds: float,
) -> Fitted:
    """Choose which of *candidates*, in their seeded order, are timed, and for how long per sample.

    The plan's minimum is timed, and further ones while its share of the time covers the rounds before the first claim:
    a task should be cheap, and each additional benchmark adds less. Each is timed for less if they do not fit into
    *seconds* before the first claim; if single calls of all do not fit either, the first ones are timed, except those
    that exceed the time on their own; if each does, the fastest is timed while there is time. More *seconds* than the
    plan's, as in a replay, leave less out and lengthen no sample. *calls* are the seconds of one call with its setup,
    by name, *single* the names of `single_calls`, and *overhead* the seconds of a process besides.
    """
    processes = rule.first_claim.units * len(Arm)
    share = seconds / processes - overhead
    costs = [
        calls[candidate.name] + (0.0 if candidate.name in single else TIMING_FACTOR * LEAST_SECONDS)
        for candidate in candidates
    ]
    fitting: list[BenchmarkCandidate] = []
    room, cheap = share, plan.claim_share * plan.max_seconds / processes - overhead
    for candidate, cost in zip(candidates, costs, strict=True):
        whole = calls[candidate.name]
        if candidate.name not in single:
            whole += calls[candidate.name] + TIMING_FACTOR * plan.seconds_per_sample
        # not faster ones that come later: the choice must not depend on duration
        if len(fitting) >= plan.least_benchmarks and whole > cheap:
            break
        if cost <= room:
            fitting.append(candidate)
            room, cheap = room - cost, cheap - whole
    if not fitting:
        fitting.append(candidates[costs.index(min(costs))])
    untimed = [candidate.name for candidate in candidates if candidate not in fitting]
    batched = sum(candidate.name not in single for candidate in fitting)
    room = min(seconds, plan.max_seconds) / processes - overhead - sum(calls[candidate.name] for candidate in fitting)
    each = min(plan.seconds_per_sample, max(LEAST_SECONDS, room / (TIMING_FACTOR * max(1, batched))))
    return Fitted(fitting, untimed, each)


def single_calls(
    candidates: Sequence[BenchmarkCandidate], longest: Mapping[str, float], plan: SamplingPlan
) -> frozenset[str]:
    """Return the names of those that one call per process must do for: it is long, or does not measure time.

    *longest* are the values of warm-up calls, by name. A survey's seconds would not do: tracing is in them.
    """
    return frozenset(
        candidate.name
        for candidate in candidates
        if candidate.quantity.metric is not Metric.TIME or longest[candidate.name] > plan.single_call_seconds
    )
