"""How a launcher treats runs of the command line, which have no container, pod or task.

Dagster's launchers take such a run for one whose worker is gone, and its monitoring then ends it while it works.
"""

from __future__ import annotations

import dagster as dg

from formulacode_dagster.building.engines.owner import Owner

from .dagster_internals import CheckRunHealthResult, RunLauncher, WorkerStatus
from .orphans import PROCESS, is_of_command_line


class LeavesCommandLineRuns(RunLauncher):
    """Passes only its own runs to the launcher that it is mixed into."""

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """As the launcher; a run of the command line is healthy unless its process is certainly gone."""
        if not is_of_command_line(run):
            return super().check_run_worker_health(run)
        owner = Owner.parse(run.tags[PROCESS])
        if owner is not None and owner.is_dead():
            return CheckRunHealthResult(WorkerStatus.FAILED, "its process was killed")
        return CheckRunHealthResult(WorkerStatus.RUNNING)

    def terminate(self, run_id: str) -> bool:
        """As the launcher; a run of the command line is ended where it was started, and nothing is reported."""
        run = self._instance.get_run_by_id(run_id)
        if run is not None and is_of_command_line(run):
            return False
        return super().terminate(run_id)  # type: ignore[safe-super]  # of the launcher, behind it in the order

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        """As the launcher; nothing for a run of the command line."""
        return None if is_of_command_line(run) else super().get_run_worker_debug_info(run, include_container_logs)
