"""Dagster's launcher for Celery, which also notices that the worker of a run is gone, and places runs without a queue.

Celery keeps "started" as the state of a task whose worker was killed, and Dagster's own launcher (0.29) believes it:
such a run is shown in progress until its time limit. When the broker hands the task to another worker, that one ignores
it, since the run has begun, and the task ends as a success of which nothing was done. So this one asks the workers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from formulacode_dagster.models.items import Stage

from .command_line_runs import LeavesCommandLineRuns
from .dagster_internals import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from .placement import QUEUE, queue_of

ANSWER_SECONDS = 3.0
"""Seconds for workers to answer."""
UNHEARD_SECONDS = 90
"""Seconds until a worker counts as dead: one under load, or with a restarting broker, still lives."""
# as in Celery's `query_task`; "reserved" would be a second delivery that waits behind another run
_AT_WORK = "active"


class _AskingCeleryRunLauncher(CeleryRunLauncher):
    """Reports the health of a run by asking the workers, and places runs of the asset graph."""

    def __init__(self, unheard_seconds: int = UNHEARD_SECONDS, **given: Any) -> None:
        super().__init__(**given)
        self._unheard_seconds = unheard_seconds
        self._unheard_since: dict[str, float] = {}

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Options in `dagster.yaml`: those of Dagster's launcher, and `unheard_seconds`."""
        described = "Seconds without a worker for a run until it is marked as failed, and relaunched."
        added = dg.Field(int, is_required=False, default_value=UNHEARD_SECONDS, description=described)
        taken: Any = super().config_type()
        return {**taken, "unheard_seconds": added}

    def launch_run(self, context: LaunchRunContext) -> None:
        """Launch it as Dagster does; a run of the asset graph, which has the tags of no job, into its stages' queue."""
        run = context.dagster_run
        keys = {*(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ())}
        stages = [stage for stage in Stage if dg.AssetKey(stage.value) in keys]
        if stages and QUEUE not in run.tags:
            tags = {QUEUE: queue_of(stages)}
            self._instance.add_run_tags(run.run_id, tags)
            context = LaunchRunContext(run.with_tags({**run.tags, **tags}), context.workspace)
        super().launch_run(context)

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return True if any worker executes *run*; raises Celery's errors if the broker does not answer."""
        if self._is_at_work(run.tags[DAGSTER_CELERY_TASK_ID_TAG]):
            self._unheard_since.pop(run.run_id, None)
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        now = time.monotonic()
        unheard = now - self._unheard_since.setdefault(run.run_id, now)
        if unheard < self._unheard_seconds:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        del self._unheard_since[run.run_id]
        return CheckRunHealthResult(WorkerStatus.FAILED, f"for {unheard:.0f} s, no worker was at it")

    def terminate(self, run_id: str) -> bool:
        """End the run, as other launchers do: it is shown as being canceled, and is not relaunched."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        return super().terminate(run_id)

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        """Return where the run was; nothing for a run that was never handed to Celery."""
        if DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return None
        return super().get_run_worker_debug_info(run, include_container_logs)

    def _is_at_work(self, task_id: str) -> bool:
        told = self.celery.AsyncResult(task_id).info
        # the worker that began it answers for itself, which spares waiting for all the others
        worker = told.get("hostname") if isinstance(told, Mapping) else None
        return (worker is not None and self._says_so(task_id, [worker])) or self._says_so(task_id, None)

    def _says_so(self, task_id: str, workers: list[str] | None) -> bool:
        inspect = self.celery.control.inspect(destination=workers, timeout=ANSWER_SECONDS)
        answers = inspect.query_task(task_id) or {}
        return any(task_id in answer and answer[task_id][0] == _AT_WORK for answer in answers.values())


class AskingCeleryRunLauncher(LeavesCommandLineRuns, _AskingCeleryRunLauncher):
    """Calls a run's worker dead when no worker has said for `unheard_seconds` that it is at the run.

    It ignores runs of the command line.
    """
