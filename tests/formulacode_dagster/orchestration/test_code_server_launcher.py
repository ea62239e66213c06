"""The launcher for runs below a code server: whose it calls dead, and how a server that is to stop ends its runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEventType
from dagster._core.launcher import WorkerStatus
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.client import DagsterGrpcClient

from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.orchestration.code_server_end import end_code_server
from formulacode_dagster.orchestration.code_server_launcher import CodeServerRunLauncher
from formulacode_dagster.orchestration.orphans import CODE_SERVER, PROCESS, SERVED_BY, process_tag
from tests.support.code_servers import CodeServer, serving

LOCATION = GrpcServerCodeLocationOrigin(host="127.0.0.1", port=4266, location_name="formulacode")
LAUNCHED = RemoteJobOrigin(RemoteRepositoryOrigin(LOCATION, "__repository__"), "some_job")
HERE = Owner.current("")
RUNNING, FAILED = WorkerStatus.RUNNING, WorkerStatus.FAILED


@dg.job
def some_job() -> None:
    """Stands for any run."""


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    """Where a code server may listen."""
    return tmp_path / "code"


@pytest.fixture
def launcher(dagster_instance: dg.DagsterInstance) -> CodeServerRunLauncher:
    made = CodeServerRunLauncher()
    made.register_instance(dagster_instance)
    return made


def begun(
    instance: dg.DagsterInstance, socket: Path, tags: dict[str, str], *, seconds: int = 600, is_launched: bool = True
) -> dg.DagsterRun:
    """A run that began *seconds* ago below the code server at *socket*."""
    told = {GRPC_INFO_TAG: json.dumps({"host": "localhost", "socket": str(socket)}), **tags}
    run = instance.create_run_for_job(some_job, tags=told, remote_job_origin=LAUNCHED if is_launched else None)
    event = dg.DagsterEvent(DagsterEventType.RUN_START.value, some_job.name)
    instance.run_storage.handle_run_event(run.run_id, event, datetime.now(tz=UTC) - timedelta(seconds=seconds))
    started = instance.get_run_by_id(run.run_id)
    assert started is not None
    return started


@pytest.fixture
def server(socket: Path) -> Iterator[CodeServer]:
    """One that answers, and is at nothing."""
    answering = CodeServer()
    with serving(answering, socket):
        yield answering


@pytest.mark.parametrize(
    ("tags", "seconds", "status"),
    [
        ({CODE_SERVER: HERE.host}, 600, FAILED),
        ({CODE_SERVER: HERE.host}, 5, RUNNING),
        ({CODE_SERVER: "another machine"}, 600, RUNNING),
        ({CODE_SERVER: HERE.model_dump_json()}, 600, RUNNING),
        ({}, 600, RUNNING),
    ],
    ids=["unknown", "just begun", "another machine's", "of `fc-data dev`", "launched by another launcher"],
)
def test_a_run_is_dead_once_its_code_server_answers_and_is_not_at_it(
    dagster_instance: dg.DagsterInstance,
    launcher: CodeServerRunLauncher,
    server: CodeServer,
    socket: Path,
    tags: dict[str, str],
    seconds: int,
    status: WorkerStatus,
) -> None:
    assert launcher.supports_check_run_worker_health
    run = begun(dagster_instance, socket, tags, seconds=seconds)
    assert launcher.check_run_worker_health(run).status is status
    server.runs.add(run.run_id)
    assert launcher.check_run_worker_health(run).status is RUNNING


def test_a_code_server_that_does_not_answer_may_come_back(
    dagster_instance: dg.DagsterInstance, launcher: CodeServerRunLauncher, socket: Path
) -> None:
    run = begun(dagster_instance, socket, {CODE_SERVER: HERE.host})
    assert launcher.check_run_worker_health(run).status is RUNNING


@pytest.mark.usefixtures("server")
def test_a_run_of_the_command_line_is_left_alone(
    dagster_instance: dg.DagsterInstance, launcher: CodeServerRunLauncher, socket: Path
) -> None:
    run = begun(dagster_instance, socket, {**process_tag(), CODE_SERVER: HERE.host}, is_launched=False)
    assert PROCESS in run.tags
    assert launcher.check_run_worker_health(run).status is RUNNING


@pytest.mark.parametrize("dev", ["", HERE.model_dump_json()], ids=["a service", "fc-data dev"])
def test_a_run_tells_below_whose_code_server_it_is(
    dagster_instance: dg.DagsterInstance,
    launcher: CodeServerRunLauncher,
    monkeypatch: pytest.MonkeyPatch,
    dev: str,
) -> None:
    monkeypatch.setenv(SERVED_BY, dev)
    run = dagster_instance.create_run_for_job(some_job, tags={CODE_SERVER: "that of the run it is a retry of"})
    context: Any = SimpleNamespace(dagster_run=run, workspace=None)
    with pytest.raises(dg.DagsterInvariantViolationError, match="workspace"):
        launcher.launch_run(context)
    told = dagster_instance.get_run_by_id(run.run_id)
    assert told is not None
    assert told.tags[CODE_SERVER] == (dev or HERE.host)


def test_a_stopping_server_takes_no_runs_and_ends_its_own(server: CodeServer, socket: Path) -> None:
    server.runs |= {"one", "two"}
    ended: list[str] = []

    def terminate(run_id: str) -> None:
        assert server.is_shut
        ended.append(run_id)
        server.runs.remove(run_id)

    assert end_code_server(DagsterGrpcClient(socket=str(socket)), terminate) == ()
    assert sorted(ended) == ["one", "two"]


def test_a_run_that_does_not_end_is_told_once_and_named(server: CodeServer, socket: Path) -> None:
    server.runs.add("stubborn")
    ended: list[str] = []
    assert end_code_server(DagsterGrpcClient(socket=str(socket)), ended.append, patience=0.6) == ("stubborn",)
    assert ended == ["stubborn"]


def test_a_server_that_is_gone_has_nothing_to_end(socket: Path) -> None:
    assert end_code_server(DagsterGrpcClient(socket=str(socket)), pytest.fail) == ()
