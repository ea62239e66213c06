"""Samples of benchmarks, and what they say."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Frozen


class Side(StrEnum):
    """Which code a sample timed. The placebo is the base, rebuilt the way the oracle is."""

    BASE = "base"
    ORACLE = "oracle"
    PLACEBO = "placebo"


class Sample(Frozen):
    """One benchmark process: the median time of one call, in seconds."""

    side: Side
    round: int = Field(description="interleaving round, from 0")
    position: int = Field(description="place within the round, from 0")
    seconds: float = Field(gt=0)
    calls: int = Field(ge=1, description="calls behind the value")


class BenchmarkResult(Frozen):
    """One benchmark with one combination of parameters. Ratios are time before / time after: above 1 is faster."""

    benchmark: str = Field(description="asv's name, `bench_core.TimeSuite.time_sort(1000)`")
    samples: tuple[Sample, ...]
    speedup: float = Field(description="median base / median oracle")
    p_value: float = Field(description="exact two-sided Mann-Whitney, base against oracle")
    effect_size: float = Field(description="Cliff's delta, -1..1; positive when the oracle is faster")
    placebo_speedup: float = Field(description="median base / median placebo")
    placebo_p_value: float
    executes_change: bool | None = Field(description="whether it runs code the patch changed; None when not traceable")


class BenchmarkFailure(Frozen):
    """A benchmark that could not be timed on one side. A timeout is a failure, never a pass."""

    benchmark: str
    side: Side
    kind: str
    message: str


class Measurement(Frozen):
    """One row of `measurements`: the author's patch timed against its base."""

    month: str
    repository_id: int
    number: int
    engine: str
    image_digest: str
    instrument: tuple[str, ...]
    suite: str = Field(description="`base`, `merge commit` where the PR brings benchmarks, or `later commit …`")
    rounds: int
    results: tuple[BenchmarkResult, ...]
    failures: tuple[BenchmarkFailure, ...] = ()
    speedup: float = Field(
        description="geometric mean over the significantly faster benchmarks; 1.0 when there is none"
    )
    significant: tuple[str, ...] = Field(description="benchmarks that are really faster, by `measurement.verdict`")
    is_faster: bool
    machine: str = Field(description="CPU model and cores the samples were taken on")
