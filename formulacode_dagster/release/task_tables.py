"""What of a task is too wide for its row: tables of their own in the dataset, joined by `task_id`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.correctness import Fate, ReachingTest
from formulacode_dagster.models.measurement import Arm, Metric, Returned, Sample
from formulacode_dagster.models.release import ReplayNote, TaskRecord


class _OfTask(Frozen):
    """A row about one task."""

    task_id: str = Field(description="`task_id` of the task's row")


class _OfBenchmark(_OfTask):
    """A row about one benchmark of a task."""

    benchmark: str = Field(description="asv's name with parameters, `bench_core.TimeSuite.time_sort(1000)`")


class ExecutedLines(Frozen):
    """Changed lines of one file that a benchmark executes."""

    side: Arm = Field(description="`base` or `oracle`: whose lines they are")
    path: str = Field(description="the file, from the root of the checkout")
    lines: tuple[int, ...] = Field(description="their numbers on that side, from 1")


class WorkloadRecord(_OfBenchmark):
    """One benchmark of a task with one combination of parameters, and its figures."""

    metric: Metric = Field(description="what it measures: `time`, `peakmemory`, `memory` or `track`")
    unit: str = Field(description="of its samples: `seconds`, `bytes`, of tracked values their author's")
    speedup: float = Field(description="geometric mean of before / after, of a rate after / before; above 1 is better")
    low: float = Field(description="lower bound of its 95 % interval")
    high: float = Field(description="upper bound of it")
    faster_p: float = Field(description="one-sided p-value of being faster, corrected over the task's benchmarks")
    slower_p: float = Field(description="the same of being slower")
    control_speedup: float = Field(description="the same figure as `speedup` of the base beside itself")
    returned: Returned = Field(description="whether it returns the same with the patch")
    executed: tuple[ExecutedLines, ...] = Field(description="changed lines that it executes, by side and file")


class SampleRecord(Sample, _OfBenchmark):
    """One benchmark of a task, timed in one process."""

    arm: Arm = Field(description="`base`, `oracle` (the author's patch) or `control` (the base once more)")
    calls: int = Field(ge=1, description="calls behind the value")


class TestRecord(ReachingTest, _OfTask):
    """A test of the repository that reaches the change of a task."""

    __test__ = False  # pytest would take it for one of its own

    fate: Fate = Field(description="what its runs say together")


class ReplayRecord(ReplayNote, _OfTask):
    """One replay of a task, known at this release."""


class Table(StrEnum):
    """The tables of a month beside its tasks: each is a folder, and a config, of the dataset."""

    WORKLOADS = "workloads"
    SAMPLES = "samples"
    TESTS = "tests"
    REPLAYS = "replays"


TABLES: dict[Table, type[Frozen]] = {
    Table.WORKLOADS: WorkloadRecord,
    Table.SAMPLES: SampleRecord,
    Table.TESTS: TestRecord,
    Table.REPLAYS: ReplayRecord,
}


class TaskRecords(Frozen):
    """What the dataset holds of one task: its row, and its rows in the other tables."""

    row: TaskRecord
    workloads: tuple[WorkloadRecord, ...] = ()
    samples: tuple[SampleRecord, ...] = ()
    tests: tuple[TestRecord, ...] = ()
    replays: tuple[ReplayRecord, ...] = ()
