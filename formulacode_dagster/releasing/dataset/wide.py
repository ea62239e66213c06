"""Content of one task too wide for its row: workloads, samples, tests, replays, profiles, procedure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence

from formulacode_dagster.measuring.correctness.verdict import fate_of
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.measurement import Arm, BenchmarkResult, Measurement, Returned, TaskProfile
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.release import Replay, TaskRecord

from .task_tables import (
    ExecutedLines,
    ProcedureRecord,
    ProfileRecord,
    ReplayRecord,
    SampleRecord,
    StatementLeak,
    SuiteFile,
    TaskRecords,
    TestRecord,
    WorkloadRecord,
)


def task_records(
    row: TaskRecord,
    measurement: Measurement,
    correctness: Correctness,
    replays: Sequence[Replay] = (),
    profile: TaskProfile | None = None,
    procedure: ProcedureRecord | None = None,
) -> TaskRecords:
    """The task of *row* with its rows in every table, workloads in the row's order.

    A *profile* of another image than the one that was measured is left out.
    """
    stacks = profile.stacks if profile and profile.image_digest == measurement.image_digest else {}
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
        profiles=tuple(
            ProfileRecord(**of_task, benchmark=name, arm=arm, **dict(told))
            for name in row.benchmarks
            for arm, told in sorted(stacks.get(name, {}).items())
        ),
        procedures=(procedure,) if procedure else (),
    )


def procedure_record(
    row: TaskRecord, measurement: Measurement, image: BuiltImage, statement: ProblemStatement
) -> ProcedureRecord | None:
    """Return how the task of *row* was measured: typed, where `procedure` is one text; None if it was not stored.

    Raises as `Procedure.parse`.
    """
    if row.procedure is None:
        return None
    procedure, rule, built = Procedure.parse(row.procedure, row.task_id), measurement.rule, image.toolchain
    files = procedure.suite_files.files or {}
    shared = {"engine", "image_digest", "patch_sha256", "harness_sha256", "suite", "limits"}
    figures = {"verdict", "look", "rounds", "control_low", "control_high", "conditions"}
    judged = {"unit", "looks", "min_speedup", "min_bound", "trade_off", "workload_alpha", "seed"}
    return ProcedureRecord(
        task_id=row.task_id,
        **{name: getattr(procedure, name) for name in shared},
        **{name: getattr(measurement, name) for name in figures},
        **{name: getattr(rule, name) for name in judged},
        rule_version=rule.version,
        alpha=rule.alpha,
        slower_p=measurement.slower_p_value,
        lock_sha256=hashlib.sha256(row.lock.encode()).hexdigest(),
        compiler=built.compiler,
        compiler_flags=_assigned(built.flags),
        tools=_assigned(built.tools),
        system_packages=built.apt,
        suite_files=tuple(_suite_file(path, data) for path, data in sorted(files.items())),
        left_out=tuple(StatementLeak(kind=leak.kind, where=leak.where) for leak in statement.left_out),
        statement_writer=statement.writer,
        statement_judges=statement.judges,
    )


def _assigned(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in sorted(values.items()))


def _suite_file(path: str, data: bytes) -> SuiteFile:
    try:
        return SuiteFile(path=path, content=data.decode(), encoding="utf-8")
    except UnicodeDecodeError:
        return SuiteFile(path=path, content=base64.b64encode(data).decode(), encoding="base64")


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
