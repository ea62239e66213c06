"""Columns too wide for a task's row: separate tables of the dataset, joined by `task_id`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.correctness import Fate, ReachingTest
from formulacode_dagster.models.image import EngineName, ResourceLimits
from formulacode_dagster.models.measurement import (
    Arm,
    InterimAnalysis,
    Metric,
    RandomizationUnit,
    Returned,
    RoundConditions,
    Sample,
    Stacks,
    Verdict,
)
from formulacode_dagster.models.problem import LeakKind
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

    metric: Metric = Field(description="metric: `time`, `peakmemory`, `memory` or `track`")
    unit: str = Field(description="of its samples: `seconds`, `bytes`, of tracked values their author's")
    speedup: float = Field(description="geometric mean of before / after, of a rate after / before; above 1 is better")
    low: float = Field(description="lower bound of its 95 % interval")
    high: float = Field(description="upper bound of it")
    faster_p: float = Field(description="one-sided p-value of being faster, corrected over the task's benchmarks")
    slower_p: float = Field(description="the same of being slower")
    control_speedup: float = Field(description="the same figure as `speedup`, for the base against itself")
    returned: Returned = Field(description="whether it returns the same with the patch")
    executed: tuple[ExecutedLines, ...] = Field(description="changed lines that it executes, by side and file")


class SampleRecord(Sample, _OfBenchmark):
    """One benchmark of a task, timed in one process."""

    arm: Arm = Field(description="`base`, `oracle` (the author's patch) or `control` (the base once more)")
    calls: int = Field(ge=1, description="calls behind the value")


class TestRecord(ReachingTest, _OfTask):
    """A test of the repository that reaches the change of a task."""

    __test__ = False  # pytest would take it for one of its own

    fate: Fate = Field(description="overall outcome of its runs")


class ReplayRecord(ReplayNote, _OfTask):
    """One replay of a task, known at this release."""


class ProfileRecord(Stacks, _OfBenchmark):
    """Stacks with the time of one benchmark of a task on one arm, for profiled tasks."""

    arm: Arm = Field(description="`base` or `oracle` (the author's patch)")


class SuiteFile(Frozen):
    """A file of the benchmarks that a task was measured by."""

    path: str = Field(description="below the checkout")
    content: str = Field(description="in `encoding`")
    encoding: str = Field(description="`utf-8`, or `base64` for binary content")


class StatementLeak(Frozen):
    """A place that was left out of a statement, since it gives something of the solution away."""

    kind: LeakKind = Field(description="the revealed part of the solution")
    where: str = Field(description="`owner/repo#n` of the issue, or the variant")


class ProcedureRecord(_OfTask):
    """How a task was built, measured and judged, with the machine's other activity."""

    engine: EngineName = Field(description="engine of the image: `docker` or `process`")
    image_digest: str = Field(description="content digest of the image that was measured, as its engine gives it")
    patch_sha256: str = Field(description="of the author's patch, as bytes")
    lock_sha256: str = Field(description="of `lock` in the task's row, as UTF-8")
    harness_sha256: str = Field(description="versions of the tools that ran the benchmarks in the image")
    compiler: str = Field(description="first line of `cc --version`")
    compiler_flags: tuple[str, ...] = Field(description="variables in force while building, as `CFLAGS=-O2`")
    tools: tuple[str, ...] = Field(description="measuring and building tools, as `name=version`")
    system_packages: tuple[str, ...] = Field(description="every installed Debian package, as `name=version`")
    limits: ResourceLimits = Field(description="limits of a build or a benchmark")
    suite: str = Field(description="`base`, `merge commit` if the pull request adds benchmarks, or another commit")
    suite_files: tuple[SuiteFile, ...] = Field(
        description="copied over every arm after its build; none if the checkout's own benchmarks are timed"
    )
    verdict: Verdict = Field(description="verdict of the rule on the samples: `faster`")
    rule_version: str = Field(description="version of the rule; a verdict is computed again by its own")
    unit: RandomizationUnit = Field(description="randomization unit: `process` or `build`")
    alpha: float = Field(description="bound on the share of patches without effect that the rule calls faster")
    looks: tuple[InterimAnalysis, ...] = Field(description="interim analyses with their levels, fixed in advance")
    look: int = Field(description="the one at which it was decided, from 0")
    rounds: int = Field(description="interleaved rounds taken, each with a sample of every arm")
    min_speedup: float = Field(description="least geometric mean of a task")
    min_bound: float = Field(description="least lower bound of its 95 % interval")
    trade_off: float = Field(description="a workload surely slower than this makes a trade-off")
    workload_alpha: float = Field(description="level at which single workloads are named, corrected")
    seed: int = Field(description="seed of the random numbers of the judgement")
    slower_p: float = Field(description="exact one-sided p-value of the task being slower")
    control_low: float = Field(description="lower bound of the 95 % interval of the row's `control_speedup`")
    control_high: float = Field(description="upper bound of it")
    conditions: tuple[RoundConditions, ...] = Field(description="other activity of the machine, by round")
    left_out: tuple[StatementLeak, ...] = Field(description="parts of the issues left out of the statement, and why")
    statement_writer: str = Field(description="model that wrote `statement_issue`; empty: a template did")
    statement_judges: tuple[str, ...] = Field(description="models that judged it in addition to the rules")


class Table(StrEnum):
    """The tables of a month besides its tasks: each is a folder, and a config, of the dataset."""

    WORKLOADS = "workloads"
    SAMPLES = "samples"
    TESTS = "tests"
    REPLAYS = "replays"
    PROFILES = "profiles"
    PROCEDURES = "procedures"


TABLES: dict[Table, type[Frozen]] = {
    Table.WORKLOADS: WorkloadRecord,
    Table.SAMPLES: SampleRecord,
    Table.TESTS: TestRecord,
    Table.REPLAYS: ReplayRecord,
    Table.PROFILES: ProfileRecord,
    Table.PROCEDURES: ProcedureRecord,
}


class TaskRecords(Frozen):
    """The dataset's content on one task: its row, and its rows in the other tables."""

    row: TaskRecord
    workloads: tuple[WorkloadRecord, ...] = ()
    samples: tuple[SampleRecord, ...] = ()
    tests: tuple[TestRecord, ...] = ()
    replays: tuple[ReplayRecord, ...] = ()
    profiles: tuple[ProfileRecord, ...] = ()
    procedures: tuple[ProcedureRecord, ...] = ()
