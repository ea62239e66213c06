"""Results of running the base, as far as a statement may show them: nothing about the patch.

Statements are written before there is an image, so this is known only once the base was measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import Arm, BenchmarkResult, HotFunction, Measurement, Metric, Quantity

from .trails import Trails

MOST_SOURCES = 20_000
"""Characters of all sources together: a solver has the files, and reads these first."""


class TimedWorkload(Frozen):
    """One workload at the base."""

    name: str = Field(description="asv's, with parameters")
    quantity: Quantity = Field(default=Quantity(), description="what it measures")
    value: float = Field(description="median of its samples at the base")
    functions: tuple[HotFunction, ...] = Field(default=(), description="where the time goes")


class BaseRun(Frozen):
    """The workloads of a task as they ran at the base."""

    machine: str = Field(description="CPU model and cores")
    sources: dict[str, str] = Field(description="of the workloads, by class or function, of the slowest first")
    workloads: tuple[TimedWorkload, ...] = Field(description="those of time first, slowest first")

    @property
    def slowest(self) -> tuple[TimedWorkload, ...]:
        """Per benchmark, the slowest combination that was profiled."""
        by_benchmark: dict[str, TimedWorkload] = {}
        for workload in self.workloads:
            if workload.functions:
                by_benchmark.setdefault(workload.name.partition("(")[0], workload)
        return tuple(by_benchmark.values())


def base_run_of(measurement: Measurement, trails: Trails) -> BaseRun | None:
    """Return what *measurement* recorded of the base; None if the base was not profiled, or not sampled.

    Only samples of the base are read. In sources, the findings of `trails` are withheld, as in issues.
    """
    profile = measurement.profile
    if profile is None:
        return None
    workloads = [
        TimedWorkload(
            name=result.benchmark,
            quantity=result.quantity,
            value=value,
            functions=profile.functions.get(result.benchmark, ()),
        )
        for result in measurement.results
        for value in _value(result)
    ]
    if not workloads:
        return None
    workloads.sort(key=_place)
    return BaseRun(
        machine=measurement.machine,
        sources={name: trails.without(source).strip("\n") for name, source in _shown(profile.sources, workloads)},
        workloads=tuple(workloads),
    )


def _shown(sources: Mapping[str, str], workloads: Iterable[TimedWorkload]) -> Iterator[tuple[str, str]]:
    """The sources of *workloads* in their order, those that fit."""
    left = MOST_SOURCES
    benchmarks = dict.fromkeys(workload.name.partition("(")[0] for workload in workloads)
    # a benchmark is a function, or a method of the class before its last dot
    for name in dict.fromkeys(name for benchmark in benchmarks for name in (benchmark, benchmark.rpartition(".")[0])):
        source = sources.get(name, "")
        if source and len(source) <= left:
            left -= len(source)
            yield name, source


def _place(workload: TimedWorkload) -> tuple[int, float, str]:
    return list(Metric).index(workload.quantity.metric), -workload.value, workload.name


def _value(result: BenchmarkResult) -> list[float]:
    taken = [sample.value for sample in result.samples if sample.arm is Arm.BASE]
    return [statistics.median(taken)] if taken else []
