"""Runs whose process is gone: whose are ended, by whom, and whose slots are given back."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.orchestration.orphans import CODE_SERVER, PROCESS, end_orphans, end_served

STARTED, CANCELED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE
LOCATION = GrpcServerCodeLocationOrigin(host="code", port=4266, location_name="formulacode")
LAUNCHED = RemoteJobOrigin(RemoteRepositoryOrigin(LOCATION, "__repository__"), "some_job")
HERE = Owner.current("")
GONE = HERE.model_copy(update={"started": "1"})
ELSEWHERE = GONE.model_copy(update={"host": "another machine"})


@dg.job
def some_job() -> None:
    """Stands for any run."""


def started(instance: dg.DagsterInstance, tags: dict[str, str], origin: RemoteJobOrigin | None = None) -> str:
    return instance.create_run_for_job(some_job, status=STARTED, tags=tags, remote_job_origin=origin).run_id


def status_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def test_a_ui_that_ends_ends_the_runs_of_its_own_code_server_alone(dagster_instance: dg.DagsterInstance) -> None:
    ours, another = HERE.model_dump_json(), HERE.model_copy(update={"pid": 1}).model_dump_json()
    below = started(dagster_instance, {CODE_SERVER: ours}, LAUNCHED)
    others = [
        started(dagster_instance, {CODE_SERVER: another}, LAUNCHED),
        started(dagster_instance, {CODE_SERVER: ELSEWHERE.model_dump_json()}, LAUNCHED),
        started(dagster_instance, {CODE_SERVER: HERE.host}, LAUNCHED),
        started(dagster_instance, {}, LAUNCHED),
        started(dagster_instance, {PROCESS: ours}),
    ]
    end_served(dagster_instance, ours)
    assert status_of(dagster_instance, below) is CANCELED
    assert {status_of(dagster_instance, run_id) for run_id in others} == {STARTED}


@pytest.mark.parametrize(
    ("tags", "origin", "status"),
    [
        ({PROCESS: GONE.model_dump_json()}, None, FAILURE),
        ({PROCESS: HERE.model_dump_json()}, None, STARTED),
        ({PROCESS: ELSEWHERE.model_dump_json()}, None, STARTED),
        ({PROCESS: GONE.model_dump_json()}, LAUNCHED, STARTED),
        ({CODE_SERVER: GONE.model_dump_json()}, LAUNCHED, CANCELED),
        ({CODE_SERVER: ELSEWHERE.model_dump_json()}, LAUNCHED, STARTED),
        ({CODE_SERVER: HERE.host}, LAUNCHED, STARTED),
    ],
    ids=["killed", "alive", "elsewhere", "repeated by the UI", "below a killed UI", "below one elsewhere", "a service"],
)
def test_a_run_is_ended_where_who_had_it_is_surely_gone(
    dagster_instance: dg.DagsterInstance,
    tags: dict[str, str],
    origin: RemoteJobOrigin | None,
    status: dg.DagsterRunStatus,
) -> None:
    run_id = started(dagster_instance, tags, origin)
    assert (run_id in end_orphans(dagster_instance)) is (status is not STARTED)
    assert status_of(dagster_instance, run_id) is status
