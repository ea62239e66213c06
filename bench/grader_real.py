"""Grades of right patches of real tasks that do not look like the author's.

python -m bench.grader_real --tasks DIR

DIR has exported tasks (`fc-data export`, any depth); those with patches in `honest_patches/TASK_ID/*.patch` are graded:
the author's patch, then each of these, each in a fresh container of the published image. The patches are our own work,
against the pull requests' base commits. One without a reward is a false reject. Ends with 1 if there is any. The last
line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.releasing.exports.evaluate import ORACLE, evaluate, grade_diff

PATCHES = Path(__file__).with_name("honest_patches")
SHOWN = 100


class RealGrade(Frozen):
    """The grade of one patch of one task."""

    task: str
    patch: str
    reward: float
    speedup: float
    reason: str
    detail: str
    seconds: float
    cpu_seconds: float


def main() -> int:
    """Grade the patches of all tasks at hand, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=Path, required=True, help="folder of exported tasks")
    parser.add_argument("--patches", type=Path, default=PATCHES, help="folder of patches, by task")
    options = parser.parse_args()
    if not (found := dict(tasks_in(options.tasks, options.patches))):
        parser.error(f"{options.tasks} has none of the tasks {', '.join(sorted(names_in(options.patches)))}")
    grades: list[RealGrade] = []
    for task, folder in found.items():
        print(f"{task} …", file=sys.stderr, flush=True)
        grades += graded(task, folder, options.patches / task)
    for grade in grades:
        times = f"{grade.reward:.2f}  {grade.speedup:.3g}x  {grade.seconds:.0f} s"
        print(f"{grade.task:32} {grade.patch:28} {times}  {grade.reason} {grade.detail[:SHOWN]}")
    report = figures(grades)
    print(json.dumps(report))
    return 1 if report["false_rejects"] else 0


def names_in(patches: Path) -> set[str]:
    """Return the ids of the tasks that have *patches*."""
    return {folder.name for folder in patches.iterdir() if folder.is_dir()}


def tasks_in(folder: Path, patches: Path) -> Iterator[tuple[str, Path]]:
    """Yield ids and folders of the exported tasks below *folder* that have *patches*."""
    names = names_in(patches)
    for path in sorted(folder.rglob("tests/task.json")):
        task = path.parent.parent
        name = str(json.loads(path.read_bytes())["task_id"])
        if name in names:
            yield name, task


def graded(task: str, folder: Path, patches: Path) -> Iterator[RealGrade]:
    """Yield the grades of the author's patch and of all *patches* at the task in *folder*."""
    yield _grade(task, ORACLE, partial(evaluate, folder, ORACLE))
    for file in sorted(patches.glob("*.patch")):
        yield _grade(task, file.stem, partial(grade_diff, folder, file.read_bytes()))


def _grade(task: str, patch: str, grade: Callable[[], dict[str, Any]]) -> RealGrade:
    started = time.monotonic()
    try:
        report = grade()
    except FormulaCodeError as error:
        report = {"metrics": {"reward": 0.0, "speedup": 1.0}, "reason": type(error).__name__, "detail": str(error)}
    metrics = report["metrics"]
    return RealGrade(
        task=task,
        patch=patch,
        reward=metrics["reward"],
        speedup=metrics["speedup"],
        reason=report["reason"],
        detail=" ".join(report["detail"].split()),
        seconds=round(time.monotonic() - started, 1),
        cpu_seconds=metrics.get("cpu_seconds", 0.0),
    )


def figures(grades: list[RealGrade]) -> dict[str, Any]:
    """Return the share of right patches that get no reward, with its interval, and what the author's get."""
    honest = [grade for grade in grades if grade.patch != ORACLE]
    refused = [f"{grade.task} {grade.patch}: {grade.reason}" for grade in honest if not grade.reward]
    interval = clopper_pearson(len(refused), len(honest)) if honest else (0.0, 1.0)
    return {
        "tasks": len({grade.task for grade in grades}),
        "patches": len(honest),
        "false_rejects": refused,
        "false_reject_interval": [round(bound, 3) for bound in interval],
        "author_rewards": {grade.task: round(grade.reward, 3) for grade in grades if grade.patch == ORACLE},
        "rewards": {f"{grade.task} {grade.patch}": round(grade.reward, 3) for grade in honest},
    }


if __name__ == "__main__":
    sys.exit(main())
