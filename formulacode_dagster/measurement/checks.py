"""The verdict on a month of measurements, recomputed from the stored samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.measurement import BenchmarkResult, Measurement, Side

from .plan import MIN_ROUNDS
from .verdict import benchmark_result, judge

FIGURES = ("speedup", "p_value", "effect_size", "placebo_speedup", "placebo_p_value")


def speedup_is_real(month: str, measurements: Sequence[Measurement]) -> Judgement:
    """Pass when every stored figure and flag is what the stored samples say, and the samples are enough."""
    offenders = [
        f"{measurement.repository_id}#{measurement.number}: {problem}"
        for measurement in measurements
        for problem in _problems(month, measurement)
    ]
    keys = Counter((measurement.repository_id, measurement.number) for measurement in measurements)
    offenders += [f"{repository}#{number}: {count} rows" for (repository, number), count in keys.items() if count > 1]
    faster = [measurement for measurement in measurements if measurement.is_faster]
    if offenders:
        summary = (
            f"{len(offenders)} contradictions between what was measured and what is claimed; first: {offenders[0]}"
        )
    else:
        summary = f"{len(faster)} of {len(measurements)} measured tasks are faster, by their own samples"
    figures = {"measured": len(measurements), "faster": len(faster), "contradictions": len(offenders)}
    return Judgement.by_offenders(summary, offenders, figures)


def _problems(month: str, measurement: Measurement) -> Iterator[str]:
    if measurement.month != month:
        yield f"belongs to {measurement.month}"
    names = Counter(result.benchmark for result in measurement.results)
    yield from (f"{name} appears {count} times" for name, count in names.items() if count > 1)
    broken = [problem for result in measurement.results for problem in _sample_problems(result)]
    yield from broken
    if not measurement.results:
        yield "no benchmark was timed"
    if broken or not measurement.results:
        return
    for result in measurement.results:
        yield from _figure_problems(result)
    verdict = judge(measurement.results)
    if verdict.is_faster is not measurement.is_faster:
        yield f"says is_faster={measurement.is_faster}, its samples say {verdict.is_faster}"
    if set(verdict.significant) != set(measurement.significant):
        yield "its samples single out other benchmarks than it does"
    if not math.isclose(verdict.speedup, measurement.speedup, rel_tol=1e-9):
        yield f"says {measurement.speedup:.4g}x, its samples say {verdict.speedup:.4g}x"


def _sample_problems(result: BenchmarkResult) -> Iterator[str]:
    for side in Side:
        samples = [sample for sample in result.samples if sample.side is side]
        if len(samples) < MIN_ROUNDS:
            yield f"{result.benchmark} has {len(samples)} samples of the {side}, {MIN_ROUNDS} are needed"
        if len({sample.round for sample in samples}) < len(samples):
            yield f"{result.benchmark} has two samples of the {side} in one round"
        if not all(math.isfinite(sample.seconds) and sample.seconds > 0 for sample in samples):
            yield f"{result.benchmark} has a sample of the {side} that is no duration"
    if not all(math.isfinite(getattr(result, name)) for name in FIGURES):
        yield f"{result.benchmark} has a figure that is not finite"


def _figure_problems(result: BenchmarkResult) -> Iterator[str]:
    again = benchmark_result(result.benchmark, result.samples, executes_change=result.executes_change)
    for name in FIGURES:
        stored, computed = getattr(result, name), getattr(again, name)
        if not math.isclose(stored, computed, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{result.benchmark} says {name} {stored:.4g}, its samples say {computed:.4g}"
