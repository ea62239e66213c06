"""The verdict on a month of measurements, recomputed from the stored samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from formulacode_dagster.models.check import CheckFinding, Doubt
from formulacode_dagster.models.measurement import (
    Arm,
    BenchmarkResult,
    Measurement,
    Quantity,
    RandomizationUnit,
    Verdict,
)

from .plan import RULE_VERSION
from .statistics.chance import clopper_pearson
from .statistics.contrasts import Samples
from .statistics.verdict import accepts_control, judge

FIGURES = (
    *("speedup", "low", "high", "p_value", "slower_p_value"),
    *("control_speedup", "control_low", "control_high"),
)
RESULT_FIGURES = ("speedup", "low", "high", "faster_p", "slower_p", "control_speedup")
LEAST_ACCEPTED = 2
"""Controls called faster that can close the gate: a single one is one event and bounds no rate."""
CLAIMS = ("verdict", "disturbed", "metric", "faster", "slower", "needs")


def speedup_is_real(month: str, measurements: Sequence[Measurement]) -> CheckFinding:
    """Pass if every stored figure and verdict follows from the stored samples, and the samples suffice.

    A row that another version of the rule has judged is refused: this one may say something else of the same samples.
    """
    offenders = [
        f"{measurement.repository_id}#{measurement.number}: {problem}"
        for measurement in measurements
        for problem in _problems(month, measurement)
    ]
    keys = Counter((measurement.repository_id, measurement.number) for measurement in measurements)
    offenders += [f"{repository}#{number}: {count} rows" for (repository, number), count in keys.items() if count > 1]
    faster = [measurement for measurement in measurements if measurement.is_faster]
    if offenders:
        summary = f"{len(offenders)} contradictions between measurements and claims; first: {offenders[0]}"
    else:
        summary = f"{len(faster)} of {len(measurements)} measured tasks are faster, by their own samples"
    figures = {"measured": len(measurements), "faster": len(faster), "contradictions": len(offenders)}
    return CheckFinding.by_offenders(summary, offenders, figures)


def controls_within_promise(measurements: Sequence[Measurement]) -> CheckFinding:
    """Pass unless more controls than promised, judged as if they were patches, would have been called faster.

    A control is the base again, so each one called faster is a false accept. The few of a month bound little: the check
    fires if the lower bound of their share exceeds the promise. With one or two controls a single one does that; it
    only warns.
    """
    accepted = [row for row in measurements if accepts_control(_samples(row), row.rule, row.look, _quantities(row))]
    promised = max((row.rule.alpha for row in measurements), default=0.0)
    low, high = clopper_pearson(len(accepted), len(measurements)) if measurements else (0.0, 1.0)
    offenders = [f"{row.repository_id}#{row.number}: its control is {row.control_speedup:.3g}x" for row in accepted]
    figures = {"controls": len(measurements), "accepted": len(accepted), "promised": promised, "upper_bound": high}
    told = f"{len(accepted)} of {len(measurements)} controls would have been called faster, promised are {promised:.1%}"
    is_kept = low <= promised
    if is_kept:
        return CheckFinding(passed=True, summary=told, figures=figures)
    if len(accepted) < LEAST_ACCEPTED:
        return Doubt(summary=f"{told}: a single one bounds no rate", offenders=tuple(offenders), figures=figures)
    told += ": measurements here are within the noise"
    return CheckFinding(passed=False, summary=told, offenders=tuple(offenders), figures=figures)


def time_and_work_agree(measurements: Sequence[Measurement]) -> CheckFinding:
    """Pass unless a task is much faster for nearly as many instructions, or takes far fewer in nearly the same time.

    That is possible, of caches, vector instructions or waiting; a person should look why.
    """
    counted = [row for row in measurements if row.instructions_ratio is not None]
    offenders = [
        f"{row.repository_id}#{row.number}: {row.speedup_text}, {row.instructions_ratio:.2f}× fewer instructions"
        for row in counted
        if row.time_and_work_disagree
    ]
    summary = f"time and instructions disagree for {len(offenders)} of {len(counted)} tasks with counted instructions"
    figures = {"counted": len(counted), "not_counted": len(measurements) - len(counted), "disagree": len(offenders)}
    return CheckFinding.by_offenders(summary, offenders, figures)


def _samples(measurement: Measurement) -> Samples:
    return {result.benchmark: result.samples for result in measurement.results}


def _quantities(measurement: Measurement) -> dict[str, Quantity]:
    return {result.benchmark: result.quantity for result in measurement.results}


def _problems(month: str, measurement: Measurement) -> Iterator[str]:
    if measurement.month != month:
        yield f"belongs to {measurement.month}"
    names = Counter(result.benchmark for result in measurement.results)
    if twice := [name for name, count in names.items() if count > 1]:
        yield from (f"{name} appears {names[name]} times" for name in twice)
        return
    broken = [problem for result in measurement.results for problem in _sample_problems(result)]
    yield from broken
    if not measurement.results:
        yield "no benchmark was timed"
    if broken or not measurement.results:
        return
    if measurement.verdict is Verdict.FASTER and (short := _shortage(measurement)):
        yield short
    if measurement.rule.version != RULE_VERSION:
        yield (
            f"was judged by version {measurement.rule.version} of the rule, and here it is {RULE_VERSION}: its samples"
            " cannot be judged again; measure it again, or judge it with the platform that measured it"
        )
        return
    try:
        again = judge(_samples(measurement), measurement.rule, measurement.look, _quantities(measurement))
    except ValueError as error:
        yield str(error)
        return
    for name in CLAIMS:
        if getattr(measurement, name) != getattr(again, name):
            yield f"says {name} {getattr(measurement, name)}, its samples say {getattr(again, name)}"
    yield from _differences(measurement, again, FIGURES)
    for result, computed in zip(measurement.results, again.results, strict=True):
        yield from (f"{result.benchmark} {problem}" for problem in _differences(result, computed, RESULT_FIGURES))


def _differences(stored: object, computed: object, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        claimed, told = getattr(stored, name), getattr(computed, name)
        if not math.isclose(claimed, told, rel_tol=1e-9, abs_tol=1e-12):
            yield f"says {name} {claimed:.4g}, its samples say {told:.4g}"


def _shortage(measurement: Measurement) -> str:
    """Return why there are too few randomization units for the claim; empty if there are enough."""
    first = measurement.rule.first_claim.units
    samples = measurement.results[0].samples
    counted = {
        arm: len(
            {
                s.round if measurement.rule.unit is RandomizationUnit.PROCESS else s.build
                for s in samples
                if s.arm is arm
            }
        )
        for arm in Arm
    }
    arm = min(counted, key=lambda arm: counted[arm])
    return f"has {counted[arm]} units of the {arm}, {first} are needed" if counted[arm] < first else ""


def _sample_problems(result: BenchmarkResult) -> Iterator[str]:
    for arm in Arm:
        samples = [sample for sample in result.samples if sample.arm is arm]
        if not samples:
            yield f"{result.benchmark} has no sample of the {arm}"
        if len({(sample.build, sample.round) for sample in samples}) < len(samples):
            yield f"{result.benchmark} has two samples of the {arm} in one round"
        if not all(math.isfinite(sample.value) and sample.value > 0 for sample in samples):
            yield f"{result.benchmark} has a sample of the {arm} without a ratio"
    if not all(math.isfinite(getattr(result, name)) for name in RESULT_FIGURES):
        yield f"{result.benchmark} has a figure that is not finite"
