"""The verdict on a task. Pure: samples and a predefined rule in, verdict out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formulacode_dagster.models.measurement import (
    Arm,
    BenchmarkResult,
    DecisionRule,
    InterimAnalysis,
    Metric,
    Quantity,
    RandomizationUnit,
    Sample,
    Verdict,
)

from .contrasts import FASTER, SLOWER, Contrast, Quantities, Samples, contrast_of, interval
from .intervals import Interval, needed_units

BOTH = (FASTER, SLOWER)
LEVEL = 0.95
UNCHANGED_LEVEL = 0.90
"""Its upper bound is that of a one-sided test at 5 % that the task is not faster by enough."""
MOST_NAMED_UNITS = 1000


@dataclass(frozen=True)
class TaskVerdict:
    """Result of one task's samples: ratios are before / after, over the benchmarks of one metric."""

    verdict: Verdict
    metric: Metric
    speedup: float
    low: float
    high: float
    p_value: float
    slower_p_value: float
    control_speedup: float
    control_low: float
    control_high: float
    disturbed: bool
    faster: tuple[str, ...]
    slower: tuple[str, ...]
    results: tuple[BenchmarkResult, ...]
    needs: str

    def figures(self) -> dict[str, Any]:
        """All of it, by the names that a row has for it."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def is_decided(self) -> bool:
        """True if more samples would be wasted."""
        return self.verdict is not Verdict.INCONCLUSIVE or self.disturbed


def judge(
    samples: Samples,
    rule: DecisionRule,
    look: int,
    quantities: Quantities | None = None,
    *,
    traced: dict[str, bool | None] | None = None,
) -> TaskVerdict:
    """Decide by *rule* as of its *look*; *traced* says which benchmarks are known to execute the change.

    One test per metric, over the mean of all its workloads, which were chosen before by what they execute. Better in
    one metric and worse in none is faster. Raises ValueError if samples are missing.
    """
    quantities = quantities or {}
    oracle, control = (contrast_of(samples, arm, rule, quantities) for arm in (Arm.ORACLE, Arm.CONTROL))
    oracles, controls = (_by_metric(contrast, samples, quantities) for contrast in (oracle, control))
    alpha = rule.looks[look].alpha
    names = list(samples)
    margin = math.log(rule.trade_off)
    faster, slower = (
        tuple(
            name for name, p in zip(names, oracle.corrected(direction, margin), strict=True) if p <= rule.workload_alpha
        )
        for direction in BOTH
    )
    # the control is judged as if it were a patch: if chance makes a task, the samples are worthless
    disturbed = any(_moved(control, direction, rule, alpha) for control in controls.values() for direction in BOTH)
    verdict = Verdict.INCONCLUSIVE if disturbed else _verdict(oracles.values(), rule, alpha, bool(faster), bool(slower))
    metric = _deciding(oracles, verdict, rule, alpha)
    decisive, beside = oracles[metric], controls[metric]
    needs = _needs(decisive, rule, disturbed=disturbed) if verdict is Verdict.INCONCLUSIVE else ""
    bounds, control_bounds = (_ratios(interval(contrast, LEVEL)) for contrast in (decisive, beside))
    return TaskVerdict(
        verdict=verdict,
        metric=metric,
        speedup=math.exp(decisive.means.mean()),
        low=bounds.low,
        high=bounds.high,
        p_value=decisive.p_value(FASTER),
        slower_p_value=decisive.p_value(SLOWER),
        control_speedup=math.exp(beside.means.mean()),
        control_low=control_bounds.low,
        control_high=control_bounds.high,
        disturbed=disturbed,
        faster=faster,
        slower=slower,
        results=_results(samples, oracle, control, quantities, traced or {}),
        needs=needs,
    )


def accepts_control(samples: Samples, rule: DecisionRule, look: int, quantities: Quantities | None = None) -> bool:
    """Return True if the control, judged as if it were a patch, is called faster at an analysis up to this one."""
    quantities = quantities or {}
    for place, at in enumerate(rule.looks[: look + 1]):
        seen = {name: taken_by(at, taken) for name, taken in samples.items()}
        control = contrast_of(seen, Arm.CONTROL, rule, quantities)
        by_metric = _by_metric(control, samples, quantities).values()
        if any(_moved(contrast, FASTER, rule, rule.looks[place].alpha) for contrast in by_metric):
            return True
    return False


def taken_by(at: InterimAnalysis, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples available at an interim analysis."""
    return [sample for sample in samples if sample.round < at.units]


def _by_metric(contrast: Contrast, names: Collection[str], quantities: Quantities) -> dict[Metric, Contrast]:
    """Return *contrast* by metric, time first."""
    places: dict[Metric, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(quantities.get(name, Quantity()).metric, []).append(place)
    return {metric: contrast.of(places[metric]) for metric in Metric if metric in places}


def _verdict(
    oracles: Collection[Contrast], rule: DecisionRule, alpha: float, some_faster: bool, some_slower: bool
) -> Verdict:
    is_faster, is_slower = (any(_moved(oracle, direction, rule, alpha) for oracle in oracles) for direction in BOTH)
    if (is_faster or some_faster) and (is_slower or some_slower):
        return Verdict.TRADE_OFF
    if is_faster:
        return Verdict.FASTER
    if is_slower:
        return Verdict.SLOWER
    is_unchanged = all(_is_unchanged(oracle, rule, alpha) for oracle in oracles)
    return Verdict.UNCHANGED if is_unchanged else Verdict.INCONCLUSIVE


def _deciding(oracles: Mapping[Metric, Contrast], verdict: Verdict, rule: DecisionRule, alpha: float) -> Metric:
    """Return the first metric that determines the verdict; for single benchmarks, the first there is."""
    direction = SLOWER if verdict is Verdict.SLOWER else FASTER
    is_open = verdict is Verdict.INCONCLUSIVE
    deciding = (
        metric
        for metric, oracle in oracles.items()
        if (not _is_unchanged(oracle, rule, alpha) if is_open else _moved(oracle, direction, rule, alpha))
    )
    return next(deciding, next(iter(oracles)))


def _is_unchanged(oracle: Contrast, rule: DecisionRule, alpha: float) -> bool:
    """Return True if a relevant speed-up is excluded, and no slow-down of that size is seen."""
    least = math.log(rule.min_speedup)
    if interval(oracle, UNCHANGED_LEVEL).high > least or oracle.means.mean() <= -least:
        return False
    margin = math.log(rule.trade_off)
    # before any claim is possible, opposite effects of workloads must not pass for no effect
    return alpha > 0 or not any(
        bounds.low > margin or bounds.high < -margin
        for bounds in (interval(oracle, UNCHANGED_LEVEL, workload) for workload in range(len(oracle.means)))
    )


def _moved(contrast: Contrast, direction: int, rule: DecisionRule, alpha: float) -> bool:
    """Return True if the mean over all workloads moved in *direction*: significantly, by enough, with enough margin."""
    bounds = interval(contrast, LEVEL)
    least = bounds.low if direction == FASTER else -bounds.high
    return (
        direction * contrast.means.mean() >= math.log(rule.min_speedup)
        and least >= math.log(rule.min_bound)
        and contrast.p_value(direction) <= alpha
    )


def _needs(oracle: Contrast, rule: DecisionRule, *, disturbed: bool) -> str:
    """Return what a decision would need, by the samples' own spread."""
    if disturbed:
        return "base and control, the same code, differ as much as a task would: measure again on a quieter machine"
    mean = float(oracle.means.mean())
    is_large = abs(mean) >= math.log(rule.min_speedup)
    margin = abs(mean) - math.log(rule.min_bound) if is_large else max(math.log(rule.min_speedup) - mean, 1e-6)
    unit = "rounds" if rule.unit is RandomizationUnit.PROCESS else "builds an arm"
    units = needed_units(oracle.spread, margin, level=LEVEL if is_large else UNCHANGED_LEVEL)
    least = rule.first_claim.units
    told = f"more than {MOST_NAMED_UNITS}" if units > MOST_NAMED_UNITS else f"about {max(units, least)}"
    return f"it would take {told} {unit} to decide"


def _results(
    samples: Samples, oracle: Contrast, control: Contrast, quantities: Quantities, traced: dict[str, bool | None]
) -> tuple[BenchmarkResult, ...]:
    corrected = [oracle.corrected(direction) for direction in BOTH]
    results = []
    for place, (name, taken) in enumerate(samples.items()):
        bounds = _ratios(interval(oracle, LEVEL, place))
        results.append(
            BenchmarkResult(
                benchmark=name,
                quantity=quantities.get(name, Quantity()),
                samples=tuple(taken),
                speedup=math.exp(oracle.means[place]),
                low=bounds.low,
                high=bounds.high,
                faster_p=corrected[0][place],
                slower_p=corrected[1][place],
                control_speedup=math.exp(control.means[place]),
                executes_change=traced.get(name),
            )
        )
    return tuple(results)


def _ratios(bounds: Interval) -> Interval:
    return Interval(math.exp(bounds.low), math.exp(bounds.high))
