"""Runs of the command line, under the launchers of deploy/: they continue, and cannot be ended from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher import CheckRunHealthResult, RunLauncher, WorkerStatus
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.orchestration.celery_launcher import AskingCeleryRunLauncher
from formulacode_dagster.orchestration.command_line_runs import LeavesCommandLineRuns
from formulacode_dagster.orchestration.docker_launcher import ContainerRunLauncher
from formulacode_dagster.orchestration.orphans import PROCESS, process_tag

STARTED = dg.DagsterRunStatus.STARTED
LOCATION = GrpcServerCodeLocationOrigin(host="code", port=4266, location_name="formulacode")
LAUNCHED = RemoteJobOrigin(RemoteRepositoryOrigin(LOCATION, "__repository__"), "some_job")
GONE = Owner.current("").model_copy(update={"started": "1"})
ELSEWHERE = Owner.current("").model_copy(update={"host": "another container"})


@dg.job
def some_job() -> None:
    """Stands for any run."""


class _LooksForWorkers(RunLauncher):
    """Finds no worker of any run, as Dagster's launchers find none of one that they did not launch."""

    def launch_run(self, context: Any) -> None:
        raise NotImplementedError

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND)

    def terminate(self, run_id: str) -> bool:
        return True

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        return "no container"


class _Launcher(LeavesCommandLineRuns, _LooksForWorkers):
    pass


LAUNCHERS: dict[str, Callable[[], RunLauncher]] = {
    "any": _Launcher,
    "Docker": ContainerRunLauncher,
    "Celery": lambda: AskingCeleryRunLauncher(0, default_queue="io", broker="memory://", backend="cache+memory://"),
}


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest, dagster_instance: dg.DagsterInstance) -> RunLauncher:
    """One of those that can be made without the machine that they launch on."""
    made = LAUNCHERS[request.param]()
    made.register_instance(dagster_instance)
    return made


@pytest.mark.parametrize(
    ("owner", "status"),
    [(Owner.current(""), WorkerStatus.RUNNING), (ELSEWHERE, WorkerStatus.RUNNING), (GONE, WorkerStatus.FAILED)],
    ids=["it lives", "nobody here can know", "it was killed"],
)
def test_it_works_unless_its_process_is_surely_gone(
    launcher: RunLauncher, dagster_instance: dg.DagsterInstance, owner: Owner, status: WorkerStatus
) -> None:
    run = dagster_instance.create_run_for_job(some_job, status=STARTED, tags={PROCESS: owner.model_dump_json()})
    assert launcher.check_run_worker_health(run).status is status
    assert launcher.get_run_worker_debug_info(run) is None


def test_what_cannot_end_it_reports_nothing_of_it(launcher: RunLauncher, dagster_instance: dg.DagsterInstance) -> None:
    run = dagster_instance.create_run_for_job(some_job, status=STARTED, tags=process_tag())
    assert not launcher.terminate(run.run_id)
    unchanged = dagster_instance.get_run_by_id(run.run_id)
    assert unchanged is not None
    assert unchanged.status is STARTED
    assert dagster_instance.all_logs(run.run_id) == []


@pytest.mark.parametrize("tags", [{}, process_tag()], ids=["without the tag", "with the tag of what it repeats"])
def test_a_run_that_was_launched_is_looked_for(dagster_instance: dg.DagsterInstance, tags: dict[str, str]) -> None:
    run = dagster_instance.create_run_for_job(some_job, status=STARTED, tags=tags, remote_job_origin=LAUNCHED)
    launcher = _Launcher()
    launcher.register_instance(dagster_instance)
    assert launcher.check_run_worker_health(run).status is WorkerStatus.NOT_FOUND
    assert launcher.get_run_worker_debug_info(run) == "no container"
    assert launcher.terminate(run.run_id)
