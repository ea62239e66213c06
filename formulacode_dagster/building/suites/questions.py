"""Questions to the harness inside a session, and its answers."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import Metric, Quantity, Stacks

MOST_ELSEWHERE = 0.1
"""Share of the time in other threads and processes from which stacks do not say where it is spent."""
TOLERANCE = defaultdict(lambda: 1e-6, {2: 1e-2, 4: 1e-3})
"""Tolerance of floats, by their bytes: some hundred times the rounding error of one."""

FAILED = frozenset({"error", "timeout", "crash", "killed"})
"""Outcomes of a benchmark that does not run."""


class ReturnValue(Frozen):
    """Result of one call, as far as two calls can be compared by it."""

    type: str
    types: tuple[str, ...] = Field(default=(), description="types of the value and all within it")
    form: str = Field(default="", description="hash over all but floats; empty where it cannot be compared")
    numbers: tuple[float, ...] = Field(default=(), description="its floats in order; of many some, evenly spread")
    total: float = Field(default=0.0, description="their sum")
    size: float = Field(default=0.0, description="sum of their sizes")
    itemsize: int = Field(default=8, description="bytes of the least precise of them")

    @property
    def is_none(self) -> bool:
        """True if it is None, as for most benchmarks."""
        return self.type == "NoneType"

    def equals(self, other: ReturnValue) -> bool:
        """Return True if both are the same, floats except for the effect of adding in another order.

        Types, shapes, texts and integers are equal; floats are within TOLERANCE of each other, or a thousandth of it of
        the largest, so that cancelled terms may be any small number.
        """
        if self.form != other.form or len(self.numbers) != len(other.numbers):
            return False
        tolerance = TOLERANCE[min(self.itemsize, other.itemsize)]
        largest = max(map(abs, (*self.numbers, *other.numbers)), default=0.0)
        return abs(self.total - other.total) <= tolerance * max(self.size, other.size) and all(
            math.isclose(number, theirs, rel_tol=tolerance, abs_tol=tolerance / 1000 * largest)
            for number, theirs in zip(self.numbers, other.numbers, strict=True)
        )


class SurveyedBenchmark(Frozen):
    """One benchmark with one combination of parameters, run once."""

    name: str
    module: str
    owner: str = Field(description="its class, `` for a function")
    attribute: str
    index: int = Field(ge=0, description="number of the combination")
    metric: Metric = Metric.TIME
    unit: str = "seconds"
    timeout: float = Field(gt=0, description="seconds the benchmark allows itself, within our limit")
    cache_folder: str = Field(description="where its `setup_cache` was run; `` without one")
    outcome: Literal["ran", "skipped", "untraced", "ruled_out", "error", "timeout", "crash", "killed"]
    message: str = ""
    seconds: float = 0.0
    setup_seconds: float = Field(default=0.0, description="CPU seconds of its setup")
    traceable: bool = False
    isolate: bool = Field(default=False, description="whether a call leaves a state that changes the next")
    lines: dict[str, tuple[int, ...]] = Field(
        default_factory=dict, description="of the lines asked for, those the timed call executed, by path"
    )
    returned: ReturnValue | None = Field(default=None, description="what the call returned, where that was asked for")

    @property
    def quantity(self) -> Quantity:
        """Its metric."""
        return Quantity(metric=self.metric, unit=self.unit)


class SampledStacks(Stacks):
    """Stacks, and how much of their time is spent in the functions that were asked for."""

    inside: float = Field(ge=0, description="seconds of stacks through these functions")
    elsewhere: float = Field(ge=0, description="seconds of other threads and processes, without a stack")

    @property
    def share_inside(self) -> float | None:
        """Share of the time inside these functions; None if too much of it was not seen."""
        seen = sum(stack.seconds for stack in self.stacks)
        return self.inside / seen if seen and self.elsewhere <= MOST_ELSEWHERE * (seen + self.elsewhere) else None


class Description(Frozen):
    """Description of a benchmark, as asv stores it."""

    name: str = Field(description="asv's, without parameters")
    metric: Metric
    unit: str
    parameters: tuple[tuple[str, ...], ...] = Field(description="of each parameter its values, as asv shows them")
    parameter_names: tuple[str, ...]
    code: str = Field(description="source of the benchmark and its setups")
    version: str = Field(description="asv's: results of another one are of another benchmark")
    timeout: float = Field(description="seconds that its author allows; 0 where nothing is said")


class Coverage(Frozen):
    """Compilers that count the lines they compile, and the folder of the counts."""

    data: str
    variables: dict[str, str] = Field(description="of the environment in which a build finds those compilers first")


class Survey(Frozen):
    """A suite as it is in one session."""

    benchmarks: tuple[SurveyedBenchmark, ...]
    lost: dict[str, str] = Field(description="modules and classes that could not be loaded, and why")
    extensions: tuple[str, ...] = Field(description="compiled modules the suite loads")
    untimed: tuple[str, ...] = Field(default=(), description="names of benchmarks of a kind that is not measured")
    uninstalled: tuple[str, ...] = Field(
        default=(), description="what it imports that is only in the repository's root, or among what its tests need"
    )
    seen: tuple[str, ...] = Field(default=(), description="compiled files of which lines asked for are counted")

    @property
    def discovered(self) -> tuple[str, ...]:
        """Names of all benchmarks, without parameters, sorted."""
        return tuple(sorted({benchmark.name.partition("(")[0] for benchmark in self.benchmarks} | set(self.untimed)))


class Timed(Frozen):
    """One sample: seconds of a call in the lower quartile of batches or the value of another metric."""

    value: float = Field(gt=0, allow_inf_nan=False)
    calls: int = Field(ge=1)
    wall: float = Field(default=0.0, description="seconds with setup and warm-up")
    waited: bool = Field(description="whether calls gave up the core by themselves, or may have")


class NotTimed(Frozen):
    """Reason for a missing sample."""

    kind: str = Field(
        description="`timeout`, `crash`, `killed`, `error`, `missing`, `skipped`, `no_ratio`, `no_result`"
    )
    message: str
    wall: float = 0.0


class Conditions(Frozen):
    """The machine's other activity while one process took its samples; shares are of the time of its core."""

    machine: str = Field(description="CPU model and cores")
    load: float = 0.0
    steal: float = 0.0
    others: float = 0.0
    own: float = 0.0
    mhz: float = 0.0


class KeptBuild(Frozen):
    """A build of the package whose shared objects are kept in the session."""

    folder: str = ""
    objects: str = Field(default="", description="hash over them; empty without any")


@dataclass(frozen=True)
class TimedBenchmark:
    """One benchmark to be timed in a process."""

    benchmark: SurveyedBenchmark
    isolate: bool
    """True if each call has a separate setup."""
    setup_seconds: float
    """CPU seconds of a setup: those of the arm that takes longest, or arms would have batches of other lengths."""
    once: bool = False
    """True if a single call must suffice."""


@dataclass(frozen=True)
class ProcessSetting:
    """Conditions shared by all arms of a round: the hash seed, and the start of stack and heap."""

    hash_seed: int = 0
    padding: int = 0
    core: int = 0
    """Core it is pinned to, counted from the last."""
    build: str = ""
    """Folder of the build to install first; empty: the installed one."""
    abreast: int = 1
    """Number of processes that share the core: each has so much less of it."""


@dataclass(frozen=True)
class ProcessAnswer:
    """Result of one process."""

    samples: tuple[Timed | NotTimed, ...]
    """One for each benchmark asked, in that order."""
    conditions: Conditions | None
    seconds: float
    """Total seconds of the process."""
