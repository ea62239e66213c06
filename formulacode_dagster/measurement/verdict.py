"""Which benchmarks are really faster. Pure: samples in, verdict out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from formulacode_dagster.models.measurement import BenchmarkResult, Sample, Side

from .statistics import cliffs_delta, geometric_mean, holm, mann_whitney

ALPHA = 0.05
"""Chance, for the whole task, to call a benchmark different that is not. As the placebo has to be beaten too, and
by the minimum, tasks without effect are called faster far more rarely: 0.2 % of them with noise of 15 %."""
MIN_SPEEDUP = 1.05
"""A ratio below this is not worth a task, however certain."""
MIN_EFFECT = 0.6
"""Cliff's delta below this means that the sides overlap widely."""


@dataclass(frozen=True)
class Verdict:
    """What the samples of one task say."""

    significant: tuple[str, ...]
    """Benchmarks that are really faster."""
    slower: tuple[str, ...]
    """Benchmarks that are really slower, by the same rule with the sides exchanged."""
    speedup: float
    detail: str

    @property
    def is_faster(self) -> bool:
        """Whether any benchmark is really faster."""
        return bool(self.significant)


def seconds_of(samples: Sequence[Sample], side: Side) -> list[float]:
    """The timings of one side, in the order they were taken."""
    return [sample.seconds for sample in samples if sample.side is side]


def benchmark_result(benchmark: str, samples: Sequence[Sample], *, executes_change: bool | None) -> BenchmarkResult:
    """The figures of one benchmark; raises ValueError when a side has no sample."""
    base, oracle, placebo = (seconds_of(samples, side) for side in Side)
    return BenchmarkResult(
        benchmark=benchmark,
        samples=tuple(samples),
        speedup=_ratio(base, oracle),
        p_value=mann_whitney(base, oracle),
        effect_size=cliffs_delta(base, oracle),
        placebo_speedup=_ratio(base, placebo),
        placebo_p_value=mann_whitney(base, placebo),
        executes_change=executes_change,
    )


def judge(results: Sequence[BenchmarkResult]) -> Verdict:
    """Decide which benchmarks are really faster.

    A benchmark is, when the oracle differs from the base after correction over all benchmarks of the task, differs from
    the placebo as well (which is the same code as the base, so it tells what difference arises by itself), and beats
    the faster of the two by the minimum.
    """
    corrected = holm([result.p_value for result in results])
    sure = [result for result, p in zip(results, corrected, strict=True) if p < ALPHA]
    faster = [result for result in sure if _beats_both(result, Side.ORACLE)]
    slower = [result for result in sure if _beats_both(result, Side.BASE)]
    speedup = geometric_mean([result.speedup for result in faster])
    return Verdict(
        significant=tuple(result.benchmark for result in faster),
        slower=tuple(result.benchmark for result in slower),
        speedup=speedup,
        detail=_detail(results, faster, slower, speedup),
    )


def _beats_both(result: BenchmarkResult, winner: Side) -> bool:
    """Whether the oracle is ahead of both unpatched sides, or (winner BASE) behind both."""
    oracle = seconds_of(result.samples, Side.ORACLE)
    for side in (Side.BASE, Side.PLACEBO):
        control = seconds_of(result.samples, side)
        slow, fast = (control, oracle) if winner is Side.ORACLE else (oracle, control)
        if mann_whitney(slow, fast) >= ALPHA or cliffs_delta(slow, fast) < MIN_EFFECT:
            return False
        if _ratio(slow, fast) < MIN_SPEEDUP:
            return False
    shown_by_placebo = max(result.placebo_speedup, 1 / result.placebo_speedup)
    return max(result.speedup, 1 / result.speedup) > shown_by_placebo


def _ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    if not slow or not fast:
        raise ValueError("a ratio needs samples of both sides")
    return statistics.median(slow) / statistics.median(fast)


def _detail(
    results: Sequence[BenchmarkResult],
    faster: Sequence[BenchmarkResult],
    slower: Sequence[BenchmarkResult],
    speedup: float,
) -> str:
    text = f"{len(faster)} of {len(results)} benchmarks are faster"
    if faster:
        best = max(faster, key=lambda result: result.speedup)
        text += f", {speedup:.2f}x in the geometric mean, at best {best.speedup:.2f}x ({best.benchmark})"
    elif results:
        closest = max(results, key=lambda result: result.speedup)
        text += (
            f"; closest is {closest.benchmark}: {closest.speedup:.3f}x, p {closest.p_value:.4f}, "
            f"placebo {closest.placebo_speedup:.3f}x"
        )
    if slower:
        worst = min(slower, key=lambda result: result.speedup)
        text += f"; {len(slower)} slower, at worst {worst.speedup:.2f}x ({worst.benchmark})"
    return text
