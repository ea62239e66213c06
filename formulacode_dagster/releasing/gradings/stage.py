"""The stage `gradings`: probe each published task through its exported grader."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.suites.harness.conditions import machine
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, NotAsked, Rejection
from formulacode_dagster.models.grading import (
    CHEATS,
    LEAST_REWARD,
    GradedProbe,
    GradingProbe,
    TaskGrading,
    median_oracle_reward,
)
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.reasons import FailureKind, RejectionReason, SkipReason
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.progress import duration
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.measurements import add_gradings, newest_gradings
from formulacode_dagster.operating.store.pull_requests import done_in
from formulacode_dagster.releasing.dataset.records import graded_records
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from formulacode_dagster.releasing.exports.evaluate import evaluate
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.exports.grader.terminal_reports import BREAKS_GRADER
from formulacode_dagster.releasing.exports.task import ExportedTask
from formulacode_dagster.releasing.exports.write import export_task, grader_sha256
from formulacode_dagster.releasing.registries.image_puller import ImagePuller

from .probes import BUILT_IN, probe_script

DETAIL_CHARACTERS = 300

Evaluate = Callable[[Path, str], dict[str, Any]]
"""`evaluate`: an exported task's folder, and an agent."""


@dataclass(frozen=True)
class GradingTools:
    """Registry, limits, and the turn of the machine."""

    puller: ImagePuller
    seconds: float
    """After so many seconds no other probe of a task begins; 0: tasks are not graded."""
    tries: int = 3
    """Gradings of the author's patch, whose median counts."""
    turn: Turn = nullcontext
    """Holds off builds while a task is graded."""
    evaluate: Evaluate = evaluate


@dataclass(frozen=True)
class _TaskToGrade:
    key: tuple[int, int]
    records: TaskRecords


async def run(stage: StageRun, tools: GradingTools) -> StageSummary:
    """Probe the pending tasks of the month, one at a time; raises as `run_items`."""
    grader = grader_sha256()
    with stage.database.transaction() as connection:
        earlier = newest_gradings(connection, stage.month)
        keys = {pr.item: pr.key for pr in done_in(connection, stage.month, Stage.MEASUREMENTS)}
        records = graded_records(connection, stage.month)
    items = [
        WorkItem(
            name,
            fingerprint(
                Stage.GRADINGS,
                *(record.row.image_digest, record.row.patch, record.row.procedure, record.row.pass_to_pass),
                *(grader, tools.seconds > 0, tools.tries),
            ),
            _TaskToGrade(keys[name], record),
        )
        for name, record in records.items()
    ]
    others = sum(keys[name] in earlier and earlier[keys[name]].grader_sha256 != grader for name in records)
    if others and tools.seconds:
        stage.warn(f"{others} of {len(records)} tasks have gradings by another version of the grader: graded again")
    # tasks share layers: pulled images are removed when all are done
    with ExitStack() as images:
        work = in_thread(_Gradings(stage, tools, images).grade)
        return await run_items(stage, ItemKind.PULL_REQUEST, items, work, add_gradings, concurrency=1)


@dataclass(frozen=True)
class _Gradings:
    """The gradings of one run."""

    stage: StageRun
    tools: GradingTools
    images: ExitStack

    def grade(self, item: WorkItem[_TaskToGrade]) -> Outcome[TaskGrading]:
        """Probe one task; rejected as `not_gradable` if a probe's reward is wrong.

        Raises NotAsked without a published image, ItemFailure as `ExportedTask.of`, `pulled` and `evaluate`.
        """
        row = item.value.records.row
        if not self.tools.seconds:
            raise NotAsked(SkipReason.NOT_GRADED, "FC_GRADING_SECONDS is 0")
        if not row.image_name or not row.image_digest:
            raise NotAsked(SkipReason.NOT_PUBLISHED, "its image is in no registry, so no grader can start from it")
        task = ExportedTask.of(row.model_dump())
        self.images.enter_context(self.tools.puller.pulled(row.image_name, row.image_digest))
        results, unfinished = self._probed(item.name, task)
        repository_id, number = item.value.key
        grading = TaskGrading(
            month=self.stage.month,
            repository_id=repository_id,
            number=number,
            task_id=row.task_id,
            image_digest=row.image_digest,
            grader_sha256=grader_sha256(),
            results=tuple(results),
            unfinished=tuple(unfinished),
            machine=machine(),
            graded_at=datetime.now(tz=UTC),
            run_id=self.stage.run_id,
        )
        detail = "; ".join(grading.objections) or (
            f"author {grading.oracle_reward:.2f}, none of {len(CHEATS) - len(unfinished)} probes gets anything"
        )
        rejection = None if grading.is_gradable else Rejection(RejectionReason.NOT_GRADABLE, detail)
        return Outcome(grading, detail=detail, rejection=rejection)

    def _probed(self, item: str, task: ExportedTask) -> tuple[list[GradedProbe], list[GradingProbe]]:
        """Return the results of the probes, and those for which the time did not suffice.

        The author's patch comes first: without its reward, other probes say nothing.
        """
        started, results, unfinished = time.monotonic(), list[GradedProbe](), list[GradingProbe]()
        count = itertools.count(1)
        with tempfile.TemporaryDirectory(prefix="fc-grading-") as scratch:
            folder = export_task(task.row, HarnessFormat.HARBOR, Path(scratch, "task"))

            def graded(probe: GradingProbe) -> GradedProbe:
                tries = f", try {next(count)} of {self.tools.tries}" if probe is GradingProbe.ORACLE else ""
                self.stage.note(f"{item}: probe {probe}{tries}")
                with self.tools.turn():
                    result = self._graded(probe, task, folder, Path(scratch, f"{probe}.sh"))
                reason = f"{result.reason} ({result.detail})" if result.detail else result.reason
                ended = f"{reason}, reward {result.reward:.2f}, in {duration(result.seconds)}"
                self.stage.note(f"{item}: probe {probe}{tries}: {ended}")
                return result

            results += tries_of(lambda: graded(GradingProbe.ORACLE), self.tools.tries)
            if median_oracle_reward(results) >= LEAST_REWARD:
                for probe in CHEATS:
                    if time.monotonic() - started > self.tools.seconds:
                        unfinished.append(probe)
                    else:
                        results.append(graded(probe))
        return results, unfinished

    def _graded(self, probe: GradingProbe, task: ExportedTask, folder: Path, script: Path) -> GradedProbe:
        if probe not in BUILT_IN:
            script.write_text(probe_script(probe, task.for_grader(), task.patch))
        started = time.monotonic()
        try:
            report = self.tools.evaluate(folder, probe.value if probe in BUILT_IN else str(script))
        except ConfigurationError as error:
            # a probe that cannot change this task's sources is no reason to stop the month
            raise ItemFailure(
                FailureKind.PROBE_NOT_MADE,
                f"the probe {probe} of {task.row['task_id']} failed",
                why=str(error),
                remedy="Report it with the task; FC_GRADING_SECONDS=0 releases the month without gradings",
            ) from error
        if report["reason"] == BREAKS_GRADER:
            raise ItemFailure(
                FailureKind.INCOMPLETE, f"the grader broke off over the probe {probe}: {report['detail']}"
            )
        return GradedProbe(
            probe=probe,
            reward=report["metrics"]["reward"],
            reason=report["reason"],
            detail=" ".join(report["detail"].split())[:DETAIL_CHARACTERS],
            seconds=round(time.monotonic() - started, 1),
            cpu_seconds=report["metrics"].get("cpu_seconds", 0.0),
        )


def tries_of(graded: Callable[[], GradedProbe], tries: int) -> Iterator[GradedProbe]:
    """Iterate over gradings of the author's patch until their median cannot change sides of `LEAST_REWARD`."""
    enough = missed = 0
    while 2 * max(enough, missed) <= tries and enough + missed < tries:
        result = graded()
        enough += result.reward >= LEAST_REWARD
        missed += result.reward < LEAST_REWARD
        yield result
