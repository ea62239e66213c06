"""What of one task is too wide for its row: workloads, samples, tests, replays."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.correctness.verdict import fate_of
from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.measurement import Arm, BenchmarkResult, Measurement, Returned
from formulacode_dagster.models.release import Replay, TaskRecord

from .task_tables import (
    ExecutedLines,
    ReplayRecord,
    SampleRecord,
    TaskRecords,
    TestRecord,
    WorkloadRecord,
)


def task_records(
    row: TaskRecord, measurement: Measurement, correctness: Correctness, replays: Sequence[Replay] = ()
) -> TaskRecords:
    """The task of *row* with its rows in every table, workloads in the row's order."""
    by_name = {result.benchmark: result for result in measurement.results}
    results = [by_name[name] for name in row.benchmarks]
    of_task = {"task_id": row.task_id}
    return TaskRecords(
        row=row,
        workloads=tuple(_workload(row.task_id, result, measurement) for result in results),
        samples=tuple(
            SampleRecord(**of_task, benchmark=result.benchmark, **dict(sample))
            for result in results
            for sample in result.samples
        ),
        tests=tuple(TestRecord(**of_task, fate=fate_of(test), **dict(test)) for test in correctness.tests),
        replays=tuple(ReplayRecord(**of_task, **dict(replay.note)) for replay in replays),
    )


def _workload(task_id: str, result: BenchmarkResult, measurement: Measurement) -> WorkloadRecord:
    figures = result.model_dump(include=set(WorkloadRecord.model_fields))
    executed = measurement.executed.get(result.benchmark, {})
    return WorkloadRecord(
        task_id=task_id,
        **figures,
        **dict(result.quantity),
        returned=measurement.returned.get(result.benchmark, Returned.NOT_COMPARABLE),
        executed=tuple(
            ExecutedLines(side=Arm(side), path=path, lines=lines)
            for side, files in executed.items()
            for path, lines in files.items()
        ),
    )
