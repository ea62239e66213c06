"""Samples of benchmarks, and the conclusions from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from statistics import geometric_mean

from pydantic import AliasChoices, Field

from .base import Frozen, PullRequestRow


class Arm(StrEnum):
    """The code that a sample timed. The control is the base again, rebuilt in the same way as the oracle."""

    BASE = "base"
    ORACLE = "oracle"
    CONTROL = "control"


class RandomizationUnit(StrEnum):
    """Randomization unit: a process for pure Python, a build (a layout of the binary) for compiled code."""

    PROCESS = "process"
    BUILD = "build"


class Metric(StrEnum):
    """Quantity that a benchmark measures, named like asv's benchmark types. A patch may be better in any of them."""

    TIME = "time"
    PEAK_MEMORY = "peakmemory"
    """The most memory that the process has had, its imports and setups included."""
    MEMORY = "memory"
    """Size of the object that is returned."""
    TRACKED = "track"
    """Any returned value."""


_RATE = re.compile(
    r"(/|\bper )\s*(s|secs?|seconds?|ms|us|ns|min|minutes?|h|hours?)$|^[kMGT]?(Hz|bps|fps|flops?)$", re.I
)


class Quantity(Frozen):
    """Quantity and unit of a benchmark."""

    metric: Metric = Metric.TIME
    unit: str = Field(default="seconds", description="asv's: `seconds`, `bytes`, of tracked values their author's")

    @property
    def is_rate(self) -> bool:
        """True if more is better: for tracked rates. Otherwise less is better, as in asv."""
        return self.metric is Metric.TRACKED and _RATE.search(self.unit.strip()) is not None


class Verdict(StrEnum):
    """Conclusion of a measurement about a patch; only `faster` makes a task."""

    FASTER = "faster"
    TRADE_OFF = "trade_off"
    """Some relevant workloads really are better, and others really are worse: of one metric, or of two."""
    UNCHANGED = "unchanged"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"


class InterimAnalysis(Frozen):
    """A moment, fixed before the first sample, at which it may be decided."""

    units: int = Field(ge=2, description="rounds taken by then, each of a process, or a build, of every arm")
    alpha: float = Field(
        ge=0, description="chance spent here to call a patch without effect faster; at 0 it can only be unchanged"
    )


class DecisionRule(Frozen):
    """How samples are judged, fixed in advance; the alphas of all interim analyses together bound false accepts."""

    version: str = Field(description="of the rule; by another one a verdict is not computed again")
    unit: RandomizationUnit = Field(description="process or build")
    looks: tuple[InterimAnalysis, ...] = Field(min_length=1, description="interim analyses with their levels")
    metrics: tuple[Metric, ...] = Field(
        default=(Metric.TIME,),
        description="judged quantities, each with a separate test at the levels of the interim analyses",
    )
    min_speedup: float = Field(
        default=1.05, description="least geometric mean of a task; a 90 % interval below it excludes one"
    )
    min_bound: float = Field(default=1.02, description="least lower bound of its 95 % interval")
    trade_off: float = Field(default=1.05, description="a workload surely slower than this makes a trade-off")
    workload_alpha: float = Field(default=0.05, description="level at which single workloads are named, corrected")
    seed: int = Field(default=0, description="seed of the random numbers of the judgement")

    @property
    def alpha(self) -> float:
        """Bound on the share of patches without effect that are called faster."""
        return len(self.metrics) * sum(look.alpha for look in self.looks)

    @property
    def first_claim(self) -> InterimAnalysis:
        """The first look at which a patch may be called faster."""
        return next(look for look in self.looks if look.alpha)


class Sample(Frozen):
    """One benchmark in one process: the undisturbed time of one call, or the value of another metric."""

    arm: Arm
    build: int = Field(default=0, ge=0, description="number of the arm's build, from 0")
    objects: str = Field(
        default="", description="hash over the build's shared objects; empty if the patch changes none"
    )
    round: int = Field(description="number of the block in which every arm ran once, from 0")
    order: int = Field(description="place of the process within the round, from 0")
    process: int = Field(default=0, description="number of the process within the measurement, from 0")
    hash_seed: int = Field(default=0, description="PYTHONHASHSEED, the same for all arms of a round")
    value: float = Field(
        gt=0,
        validation_alias=AliasChoices("value", "seconds"),
        description="in the unit of its benchmark: seconds, bytes, or that of a tracked value",
    )
    calls: int = Field(ge=1, description="calls behind the value")


class RoundConditions(Frozen):
    """Load of the machine during a round; the worst of its processes."""

    round: int = Field(description="number of the round")
    load: float = Field(description="load average of the last minute")
    steal: float = Field(description="share of the core's time that the hypervisor took")
    others: float = Field(description="share of the core's time that other processes took")
    mhz: float = Field(description="clock of the core; 0 if unknown")
    disturbed: bool = Field(
        description="whether it exceeded the limit, so that the round was repeated within the allowed number"
    )


class BenchmarkResult(Frozen):
    """One benchmark with one combination of parameters.

    Ratios are before / after, of a rate after / before: above 1 is better, which is called faster of any metric.
    """

    benchmark: str = Field(description="asv's name, `bench_core.TimeSuite.time_sort(1000)`")
    quantity: Quantity = Field(default=Quantity(), description="metric and unit")
    samples: tuple[Sample, ...]
    speedup: float = Field(description="geometric mean of base / oracle over the units of chance")
    low: float = Field(description="lower bound of its 95 % interval")
    high: float = Field(description="upper bound of it")
    faster_p: float = Field(description="one-sided p-value of being faster, corrected over the task's benchmarks")
    slower_p: float = Field(description="the same of being slower")
    control_speedup: float = Field(description="geometric mean of base / control")
    executes_change: bool | None = Field(
        description="whether it executes a line the patch changed; None when not known"
    )


class BenchmarkFailure(Frozen):
    """A benchmark that could not be timed on one arm. A timeout is a failure, never a pass."""

    benchmark: str
    arm: Arm
    kind: str
    message: str


class Source(StrEnum):
    """Sources of workloads, in the order in which they are tried until enough workloads execute the change."""

    BASE_SUITE = "base_suite"
    PULL_REQUEST = "pull_request"
    """The pull request's own changes to the suite."""
    MISSED_BY_RULE = "missed_by_rule"
    """Callables that the pull request brings into the suite, and that asv's rule of names leaves out."""
    LATER_SUITE = "later_suite"
    EARLIER_SUITE = "earlier_suite"
    OTHER_REPOSITORY = "other_repository"
    """A suite in a separate repository, whose configuration names the measured one."""
    PYTEST_BENCHMARK = "pytest_benchmark"
    SCRIPTS = "scripts"
    """Scripts and functions in files that are named for benchmarks, which neither asv nor pytest-benchmark knows."""
    OWN_TESTS = "own_tests"
    """The repository's own tests, called as benchmarks."""
    SCALED_TESTS = "scaled_tests"
    """Short ones of them, with larger inputs."""
    SNIPPETS = "snippets"
    """Code that the pull request's text shows, or that of an issue which it closes, or the documents at the base."""
    MODEL = "model"
    """A benchmark written by a model, if one is configured."""


class WorkloadProvenance(Frozen):
    """Origin of a set of workloads."""

    source: Source = Source.BASE_SUITE
    repository: str = Field(default="", description="repository of its files; `` for the pull request's own")
    commit: str = Field(default="", description="of that repository; `` for the files that the checkout has anyway")
    sha256: str = Field(default="", description="hash over the files copied over every arm; `` for the checkout's own")
    adapted: tuple[str, ...] = Field(default=(), description="converted code, as `file: benchmark = original`")


class Returned(StrEnum):
    """Comparison of a benchmark's return values with and without the patch."""

    SAME = "same"
    DIFFERENT = "different"
    UNSTABLE = "unstable"
    """Two calls of one side differ: no evidence of either."""
    NOT_COMPARABLE = "not_comparable"
    """Nothing is returned, or a value without a plain form, or the second call failed."""


class InstructionCount(Frozen):
    """Instructions that one call of a workload takes on either side, its first call apart.

    They are the same in every repetition and on every machine of the architecture, but no time: caches, threads and
    vector instructions make two calls of as many instructions differ.
    """

    base: int | None = Field(default=None, ge=0, description="by callgrind, at the base; null if not counted")
    oracle: int | None = Field(default=None, ge=0, description="with the author's patch; null if not counted")
    not_counted: str = Field(default="", description="why one of them is missing")

    @property
    def ratio(self) -> float | None:
        """Base / oracle: above 1 is less work; None if one was not counted."""
        return self.base / self.oracle if self.base and self.oracle else None


def instructions_ratio(counts: Iterable[InstructionCount]) -> float | None:
    """Return the geometric mean of base / oracle of *counts*; None if none has both."""
    ratios = [count.ratio for count in counts if count.ratio]
    return geometric_mean(ratios) if ratios else None


class HotFunction(Frozen):
    """A function in which the time of a workload goes; shares are of calls of the workload, under the profiler."""

    file: str = Field(description="below the repository, or the folder it is installed in; empty for compiled code")
    function: str = Field(description="its name, with its class from CPython 3.11 on")
    line: int = Field(ge=0, description="where it begins; 0 for compiled code")
    own: float = Field(ge=0, le=1, description="share spent in itself")
    cumulative: float = Field(ge=0, le=1, description="share spent in it and its callees")


class BaseProfile(Frozen):
    """Where the timed workloads spend their time on the base, by cProfile, outside all samples."""

    functions: dict[str, tuple[HotFunction, ...]] = Field(
        description="of each workload the functions with the largest share of their own, those of the suite left out"
    )
    sources: dict[str, str] = Field(
        description="classes and functions that the workloads are, by asv's name without method and parameters"
    )


class Frame(Frozen):
    """A function on a stack."""

    file: str = Field(description="below the repository, or the folder it is installed in")
    function: str = Field(description="its name, with its class from CPython 3.11 on")
    line: int = Field(ge=0, description="where it begins")


class StackTime(Frozen):
    """A stack, and the time spent in it."""

    frames: tuple[int, ...] = Field(description="numbers of its frames, from the benchmark inwards")
    seconds: float = Field(description="own time while the last of them ran")


class Stacks(Frozen):
    """Stacks in which a workload spends its time on one arm; each frame is named once."""

    frames: tuple[Frame, ...] = Field(description="functions that were seen on a stack")
    stacks: tuple[StackTime, ...] = Field(description="what was spent in which of them")
    calls: int = Field(ge=0, description="calls that were looked at")
    seconds: float = Field(ge=0, description="of their own time")

    @property
    def seconds_per_call(self) -> float:
        """Own time of one call; 0 without calls."""
        return self.seconds / self.calls if self.calls else 0.0


class TaskProfile(PullRequestRow):
    """Stacks in which base and oracle of a task spend their time, by workload; outside all samples."""

    image_digest: str = Field(description="the image they ran in")
    stacks: dict[str, dict[Arm, Stacks]] = Field(description="by benchmark, `base` and `oracle`")


class Occasion(StrEnum):
    """Why something was measured."""

    FIRST = "first"
    CHANGED = "changed"
    """An input of the previous measurement changed, or that measurement had failed."""
    FORCED = "forced"


LARGE_RATIO, SMALL_RATIO = 2.0, 1.1
LEAST_TIME_IN_CHANGE = 0.03
"""Without such a share of its time a call would be 1.03 times faster, and a task must be 1.05 times faster."""
LEAST_REACHED = 0.5
"""Share of the changed functions that benchmarks execute; with less, others are looked for."""


class Measurement(PullRequestRow):
    """The author's patch timed against its base, the newest of all times that this was done."""

    attempt: int = Field(default=1, ge=1, description="number of measurements so far; none is ever replaced")
    occasion: Occasion = Field(default=Occasion.FIRST, description="why: `first`, `changed` or `forced`")
    reason: str = Field(default="", description="reason given for a forced run")
    inputs: str = Field(default="", description="fingerprint of all that it depends on")
    run_id: str = Field(default="", description="the run that measured it")
    engine: str = Field(description="docker or process")
    image_digest: str = Field(description="the image it was measured in")
    instrument: tuple[str, ...] = Field(description="pinned measuring tools, e.g. `asv_runner==0.2.1`")
    suite: str = Field(description="`base`, `merge commit` where the PR brings benchmarks, or `later commit …`")
    provenance: WorkloadProvenance = Field(default=WorkloadProvenance(), description="source of the timed benchmarks")
    executed: dict[str, dict[str, dict[str, tuple[int, ...]]]] = Field(
        default_factory=dict, description="changed lines that each benchmark executes: by benchmark, arm and path"
    )
    compiled: tuple[str, ...] = Field(
        default=(), description="compiled parts of the change, which line tracing does not cover"
    )
    procedure_sha256: str = Field(default="", description="address of the stored procedure; empty if it is not a task")
    verdict: Verdict = Field(description="`faster`, `trade_off`, `unchanged`, `slower` or `inconclusive`")
    metric: Metric = Field(
        default=Metric.TIME,
        description="metric of the speed-up: the first of time, peak memory, memory and tracked values that decided",
    )
    speedup: float = Field(description="geometric mean of base / oracle over all relevant benchmarks of that metric")
    low: float = Field(description="lower bound of its 95 % interval")
    high: float = Field(description="upper bound of it")
    p_value: float = Field(description="exact one-sided p-value of the task being faster")
    slower_p_value: float = Field(description="exact one-sided p-value of its being slower")
    control_speedup: float = Field(description="geometric mean of base / control: the ratio without a change")
    control_low: float = Field(description="lower bound of its 95 % interval")
    control_high: float = Field(description="upper bound of it")
    disturbed: bool = Field(description="whether the control differs from the base by the rule that judges patches")
    faster: tuple[str, ...] = Field(description="benchmarks that really are faster by the rule's margin, corrected")
    slower: tuple[str, ...] = Field(description="benchmarks that really are slower by it, corrected")
    needs: str = Field(description="requirement for a conclusive result; empty otherwise")
    rule: DecisionRule = Field(description="how it was decided, fixed before")
    look: int = Field(description="the look at which it was decided, from 0")
    rounds: int = Field(description="interleaving rounds, each with a sample of every arm")
    results: tuple[BenchmarkResult, ...] = Field(description="samples and figures of each benchmark")
    returned: dict[str, Returned] = Field(
        default_factory=dict, description="whether each benchmark returns the same with the patch; only if faster"
    )
    profile: BaseProfile | None = Field(
        default=None, description="where the base spends its time in each benchmark; only if faster"
    )
    instructions: dict[str, InstructionCount] = Field(
        default_factory=dict, description="instructions of a call of each benchmark; only if faster or inconclusive"
    )
    failures: tuple[BenchmarkFailure, ...] = Field(
        default=(), description="benchmarks that could not be timed, and why"
    )
    untimed: tuple[str, ...] = Field(default=(), description="relevant benchmarks that the time did not suffice for")
    unsurveyed: int = Field(
        default=0, ge=0, description="benchmarks that there was no time to run once: whether they matter is not known"
    )
    undrawn: int = Field(
        default=0, ge=0, description="relevant benchmarks that were not drawn, beyond the most that are timed"
    )
    weak: int = Field(
        default=0,
        ge=0,
        description="relevant benchmarks that were not timed for spending hardly any time in the change",
    )
    time_in_change: dict[str, float] = Field(
        default_factory=dict,
        description="share of its time that each benchmark spends in changed functions, on the side with more; "
        "where it can be seen",
    )
    reached: float | None = Field(
        default=None, description="share of the changed functions of which a benchmark executes a changed line"
    )
    unreached: tuple[str, ...] = Field(default=(), description="changed functions of which none does, as `path:name`")
    conditions: tuple[RoundConditions, ...] = Field(default=(), description="other activity of the machine, by round")
    seconds: float = Field(default=0.0, description="wall time of surveys, warm-up and rounds")
    machine: str = Field(description="CPU model and cores the samples were taken on")

    @property
    def returning_other(self) -> tuple[str, ...]:
        """Benchmarks that return something else with the patch."""
        return tuple(name for name, returned in self.returned.items() if returned is Returned.DIFFERENT)

    @property
    def instructions_ratio(self) -> float | None:
        """Geometric mean of base / oracle over the benchmarks that were counted; None if none was."""
        return instructions_ratio(self.instructions.values())

    @property
    def time_and_work_disagree(self) -> bool:
        """True if it takes less than half the time for nearly as many instructions, or the other way round."""
        work = self.instructions_ratio
        if work is None or self.metric is not Metric.TIME:
            return False
        return max(work, self.speedup) >= LARGE_RATIO and min(work, self.speedup) < SMALL_RATIO

    @property
    def is_weakly_aimed(self) -> bool:
        """True if it is unchanged and says little of the change: no benchmark spends much of its time in it, or all of
        them leave most of it out.
        """
        shares = [self.time_in_change.get(result.benchmark, 1.0) for result in self.results]
        is_weak = bool(shares) and max(shares) < LEAST_TIME_IN_CHANGE
        is_partial = self.reached is not None and self.reached < LEAST_REACHED
        return self.verdict is Verdict.UNCHANGED and (is_weak or is_partial)

    @property
    def speedup_text(self) -> str:
        """Return `1.34×`, with the metric if it is not time: `1.34× of peakmemory`."""
        return f"{self.speedup:.2f}×" + ("" if self.metric is Metric.TIME else f" of {self.metric}")

    @property
    def is_faster(self) -> bool:
        """True if it is a task."""
        return self.verdict is Verdict.FASTER
