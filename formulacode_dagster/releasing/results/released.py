"""The tasks of a release as runs must have had them: image, statement, grader."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.exports.task import ExportedTask
from formulacode_dagster.releasing.exports.write import grader_sha256, task_files

from .harbor import export_digest
from .recorded import RecordedRun
from .task_facts import statement_sha256


@dataclass(frozen=True)
class TaskIdentity:
    """Hashes of a task's export."""

    task_sha256: str
    grader_sha256: str
    export_digest: str


@dataclass(frozen=True)
class ReleasedTask:
    """A row of a release, and its tag."""

    tag: str
    row: Mapping[str, Any]

    @property
    def id(self) -> str:
        """`owner__repo-number`."""
        return str(self.row["task_id"])

    @property
    def month(self) -> str:
        """`YYYY-MM` of the merge."""
        return str(self.row["month"])

    @property
    def statement_sha256(self) -> str:
        """Hash of the statement that agents get."""
        return statement_sha256(self.row)

    @functools.cached_property
    def identity(self) -> TaskIdentity:
        """Hashes of the export; raises ItemFailure if the row cannot be exported."""
        files = task_files(ExportedTask.of(self.row), HarnessFormat.HARBOR)
        return TaskIdentity(
            task_sha256=hashlib.sha256(files["tests/task.json"]).hexdigest(),
            grader_sha256=grader_sha256(),
            export_digest=export_digest(files),
        )


class ReleasedTasks:
    """The tasks that runs may be of."""

    def __init__(self, name: str, tasks: Iterable[ReleasedTask]) -> None:
        """*name* is that of the dataset."""
        self._name = name
        self._tasks: dict[str, ReleasedTask] = {}
        for task in tasks:
            for format_ in HarnessFormat:
                self._tasks[format_.folder_name(task.id)] = task

    def task_of(self, run: RecordedRun) -> ReleasedTask:
        """Return the task of *run*.

        Raises ItemFailure: `vanished` if no release has it; `mismatch` if the run had another image, statement,
        workload, or grader; what the row itself lacks, if it cannot be exported.
        """
        task = self._tasks.get(run.task)
        if task is None:
            raise ItemFailure(
                FailureKind.VANISHED,
                f"{run.name}: {run.task} is no task of {self._name}",
                remedy="Name the dataset, with --from, or the tag, with --revision, that it was exported from",
            )
        for what, found, wanted in _differences(run, task):
            if found != wanted:
                raise ItemFailure(
                    FailureKind.MISMATCH,
                    f"{run.name}: {what} of {task.id} is not that of {task.tag}",
                    why=f"{found[:12] or 'none'} is recorded, and the release has {wanted[:12]}",
                    remedy="Export the release again and run the agent on it; or name the tag with --revision",
                )
        return task


def _differences(run: RecordedRun, task: ReleasedTask) -> list[tuple[str, str, str]]:
    """Pairs of what was recorded and what the release has; none for a run that nothing was graded in."""
    report, identity = run.report, task.identity
    pairs = []
    if report is not None:
        pairs += [
            ("the task", report.task, task.id),
            ("the grader's input (image, workloads, tests, rule)", report.task_sha256, identity.task_sha256),
            ("the grader", report.grader_sha256, identity.grader_sha256),
        ]
    if run.export_digest:
        pairs.append(("the exported folder", run.export_digest, identity.export_digest))
    return pairs
