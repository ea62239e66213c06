"""The stage `replays`: measure each task of a release again, from its row and its image."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Connection

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.measuring.measurement.procedure import harness_sha256
from formulacode_dagster.measuring.measurement.remeasure import measure_again
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.models.release import Replay, ReplayVerdict
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.measurements import add_replay
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth
from formulacode_dagster.releasing.registries.image_puller import ImagePuller

from .released import TaskToReplay, released_image, tasks_of
from .verdict import described, verdict_of


@dataclass(frozen=True)
class ReplayTools:
    """A release, and the tools that measure it again."""

    engine: Engine
    puller: ImagePuller
    destination: str
    released: ReleasedMonth
    cores: Cores = field(default_factory=Cores)


async def run(stage: StageRun, tools: ReplayTools) -> StageSummary:
    """Replay the pending tasks of the release, one at a time; raises as `run_items`."""
    if not stage.options.dry_run:
        tools.engine.clean()
    items = [
        WorkItem(
            task.item,
            fingerprint(
                Stage.REPLAYS,
                *(task.task_id, hashlib.sha256(task.patch).hexdigest(), task.procedure_json),
                *(task.image_name, task.image_digest),
            ),
            task,
        )
        for task in tasks_of(tools.released)
    ]
    # tasks share layers: pulled images are removed when all are done
    with ExitStack() as images:
        work = in_thread(_Replays(stage, tools, images).replay)
        return await run_items(stage, ItemKind.PULL_REQUEST, items, work, _save, concurrency=1)


@dataclass(frozen=True)
class _Replays:
    """The replays of one run. They read nothing about the tasks from this platform's database."""

    stage: StageRun
    tools: ReplayTools
    images: ExitStack

    def replay(self, item: WorkItem[TaskToReplay]) -> Outcome[Replay]:
        """Measure one task again: done when that confirms it, rejected when it does not.

        Raises ItemFailure, stored as a separate replay, if it could not be run.
        """
        task = item.value
        try:
            measured, log, is_same_harness = self._measure(task)
        except ItemFailure as failure:
            self._keep(self._row(task, ReplayVerdict.COULD_NOT_RUN, str(failure), failure=failure.kind))
            raise
        verdict, kind = verdict_of(measured, task.metric)
        detail = described(measured)
        row = self._row(task, verdict, detail, failure=kind, is_same_harness=is_same_harness, measurement=measured)
        if kind is not None:
            self._keep(row)
            raise _disturbed(task, detail, log)
        confirmed = verdict is ReplayVerdict.CONFIRMED
        rejection = None if confirmed else Rejection(RejectionReason.NOT_CONFIRMED, detail)
        return Outcome(row, detail=detail, log=log, rejection=rejection)

    def _measure(self, task: TaskToReplay) -> tuple[Measurement, str, bool]:
        procedure = task.procedure()
        if procedure.engine is not self.tools.engine.name:
            raise ItemFailure(
                FailureKind.OTHER_ENGINE,
                f"{task.task_id} was measured with {procedure.engine}, and here {self.tools.engine.name} is at work",
                remedy=f"Set FC_ENGINE={procedure.engine}",
            )
        digest = procedure.image_digest
        if task.image_digest and procedure.engine is EngineName.DOCKER:
            self._note(task, f"pulling {task.image_name}")
            digest = self.images.enter_context(self.tools.puller.pulled(task.image_name, task.image_digest))
        measured, log = measure_again(
            self.tools.engine,
            released_image(task, procedure, self.tools.engine, digest),
            procedure,
            patch=task.patch,
            seed=int(hashlib.sha256(f"{self.stage.run_id} {task.task_id}".encode()).hexdigest()[:8], 16),
            run_id=self.stage.run_id,
            cores=self.tools.cores,
            progress=functools.partial(self._note, task),
        )
        measured = measured.model_copy(update={"run_id": self.stage.run_id})
        return measured, log, procedure.harness_sha256 == harness_sha256()

    def _row(
        self,
        task: TaskToReplay,
        verdict: ReplayVerdict,
        detail: str,
        *,
        failure: FailureKind | None,
        is_same_harness: bool = False,
        measurement: Measurement | None = None,
    ) -> Replay:
        return Replay(
            month=task.month,
            task_id=task.task_id,
            attempt=1,
            release=self.tools.released.tag,
            destination=self.tools.destination,
            replayed_at=datetime.now(tz=UTC),
            run_id=self.stage.run_id,
            verdict=verdict,
            failure=failure,
            detail=detail,
            is_same_harness=is_same_harness,
            measurement=measurement,
            released_speedup=task.speedup,
            released_instructions_ratio=task.instructions_ratio,
        )

    def _keep(self, row: Replay) -> None:
        with self.stage.database.transaction() as connection:
            add_replay(connection, row)

    def _note(self, task: TaskToReplay, line: str) -> None:
        self.stage.note(f"{task.item}: {line}")


def _save(connection: Connection, rows: Sequence[Replay]) -> None:
    for row in rows:
        add_replay(connection, row)


def _disturbed(task: TaskToReplay, detail: str, log: str) -> ItemFailure:
    failure = ItemFailure(
        FailureKind.DISTURBED,
        f"{task.task_id} was measured again, but the samples are unusable",
        why=detail,
        remedy="Replay it on a quieter machine, with --force",
    )
    failure.log = log
    return failure
