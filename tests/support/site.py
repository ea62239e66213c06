"""A dataset whose texts try to be more than text, in any size."""

from __future__ import annotations

import json
import random
from pathlib import Path

from formulacode_dagster.library import Dataset
from formulacode_dagster.models.measurement import Arm, Frame, Metric, Returned, StackTime
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.tables import month_tables
from formulacode_dagster.releasing.dataset.task_tables import (
    ExecutedLines,
    ProfileRecord,
    SampleRecord,
    TaskRecords,
    TestRecord,
    WorkloadRecord,
)
from formulacode_dagster.releasing.results.task_facts import statement_sha256
from tests.support.release import replay_note, task_row

HOSTILE = (
    '<script>window.hacked=1</script>"><img src=x onerror=window.hacked=2> \'"--></pre></textarea></title>'
    "</script> {{ 7 * 7 }} {% raw %} javascript:window.hacked=3 \u2028 & é"
)
AS_RELEASED = {"image_digest": str(None), "statement_sha256": statement_sha256({"final_md": HOSTILE})}
"""Image and statement of a run of one of these tasks, which have no image."""
ARM_SECONDS = {Arm.BASE: 0.02, Arm.ORACLE: 0.01, Arm.CONTROL: 0.0201}


def hostile_task(number: int, month: str, **changes: object) -> TaskRecords:
    """Task `acme__fast-N`, every text of which is hostile, with samples of two workloads."""
    task = {"task_id": f"acme__fast-{number}"}
    chance = random.Random(number)  # noqa: S311 - no secret
    texts = dict.fromkeys(
        ("final_md", "patch", "lock", "machine", "python", "workload_commit", "classification"), HOSTILE
    )
    texts["replays"] = json.dumps([replay_note(machine=HOSTILE, cpu_family=HOSTILE)] if number % 3 == 2 else [])
    row = task_row(number, **{**texts, "month": month, "repo_name": f'acme/fast"><script>{number % 40}', **changes})
    names = (f"bench.time_it('{HOSTILE}')", "bench.time_b")
    return TaskRecords(
        row=row,
        workloads=tuple(
            WorkloadRecord(
                **task,
                benchmark=name,
                metric=Metric.TIME,
                unit="seconds",
                speedup=2.0,
                low=1.8,
                high=2.2,
                faster_p=0.001,
                slower_p=1.0,
                control_speedup=1.0,
                returned=Returned.SAME,
                executed=(ExecutedLines(side=Arm.BASE, path=HOSTILE, lines=(1, 2)),),
            )
            for name in names
        ),
        samples=tuple(
            SampleRecord(
                **task,
                benchmark=name,
                arm=arm,
                value=seconds * chance.uniform(0.9, 1.1),
                calls=3,
                round=taken,
                order=0,
            )
            for name in names
            for arm, seconds in ARM_SECONDS.items()
            for taken in range(12)
        ),
        tests=(
            TestRecord(
                **task,
                name=f"t.py::test[{HOSTILE}]",
                fate="pass_to_pass",
                base=("passed",) * 3,
                oracle=("passed",) * 3,
                seconds=0.1,
            ),
        ),
        profiles=tuple(
            ProfileRecord(
                **task,
                benchmark=names[0],
                arm=arm,
                frames=(
                    Frame(file="bench.py", function="time_it", line=1),
                    Frame(file=HOSTILE, function=HOSTILE, line=7),
                ),
                stacks=(StackTime(frames=(0,), seconds=seconds), StackTime(frames=(0, 1), seconds=9 * seconds)),
                calls=10,
                seconds=10 * seconds,
            )
            for arm, seconds in ARM_SECONDS.items()
            if arm is not Arm.CONTROL
        ),
    )


def hostile_dataset(folder: Path, tasks: int, months: int = 1) -> Dataset:
    """So many tasks in so many months, in *folder*."""
    month = Month.parse("2026-01")
    for number in range(months):
        mine = [hostile_task(task, month.key) for task in range(number, tasks, months)]
        FolderDestination(folder).release(month, month_tables(mine))
        month = month.next()
    return Dataset.load(folder)
