"""Samples of benchmarks, and what they say."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow


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
    executes_change: bool | None = Field(
        description="whether it executes a line the patch changed; None when not known"
    )


class BenchmarkFailure(Frozen):
    """A benchmark that could not be timed on one side. A timeout is a failure, never a pass."""

    benchmark: str
    side: Side
    kind: str
    message: str


class Source(StrEnum):
    """Where workloads are looked for, in this order, until enough of them execute the change."""

    BASE_SUITE = "base_suite"
    PULL_REQUEST = "pull_request"
    """The pull request's own changes to the suite."""
    MISSED_BY_RULE = "missed_by_rule"
    """Callables that the pull request brings into the suite, and that asv's rule of names leaves out."""
    LATER_SUITE = "later_suite"
    EARLIER_SUITE = "earlier_suite"
    PYTEST_BENCHMARK = "pytest_benchmark"
    OWN_TESTS = "own_tests"
    """The repository's own tests, called as benchmarks."""


class Provenance(Frozen):
    """Where a set of workloads comes from."""

    source: Source = Source.BASE_SUITE
    commit: str = Field(default="", description="where its files were read; `` for the checkout's own")
    sha256: str = Field(default="", description="hash over the files laid over every arm; `` for the checkout's own")
    adapted: tuple[str, ...] = Field(
        default=(), description="what was made a benchmark of, as `file: benchmark = original`"
    )


class Measurement(PullRequestRow):
    """The author's patch timed against its base."""

    engine: str = Field(description="docker or process")
    image_digest: str = Field(description="the image it was measured in")
    instrument: tuple[str, ...] = Field(description="pinned measuring tools, e.g. `asv_runner==0.2.1`")
    suite: str = Field(description="`base`, `merge commit` where the PR brings benchmarks, or `later commit …`")
    provenance: Provenance = Field(default=Provenance(), description="where the benchmarks that were timed come from")
    executed: dict[str, dict[str, dict[str, tuple[int, ...]]]] = Field(
        default_factory=dict, description="changed lines that each benchmark executes: by benchmark, side and path"
    )
    rounds: int = Field(description="interleaving rounds, each with a sample of every side")
    results: tuple[BenchmarkResult, ...] = Field(description="samples and figures of each benchmark")
    failures: tuple[BenchmarkFailure, ...] = Field(
        default=(), description="benchmarks that could not be timed, and why"
    )
    speedup: float = Field(
        description="geometric mean over the significantly faster benchmarks; 1.0 when there is none"
    )
    significant: tuple[str, ...] = Field(description="benchmarks that are really faster, by `measurement.verdict`")
    is_faster: bool = Field(description="whether the speed-up is real")
    machine: str = Field(description="CPU model and cores the samples were taken on")
