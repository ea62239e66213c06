"""Runs without any living process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.claims import ClaimableItem, Worker
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.orchestration.ended_runs import LONG_OVER, runs_over


@dg.op
def idle() -> None:
    """Nothing."""


@dg.job
def idling() -> None:
    idle()


def over(instance: dg.DagsterInstance, database: Database, run_id: str, later: timedelta) -> bool:
    return runs_over(instance, database, now=datetime.now(tz=UTC) + later)(run_id)


def ended(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> str:
    run = instance.create_run_for_job(idling, status=dg.DagsterRunStatus.STARTED)
    if status is dg.DagsterRunStatus.FAILURE:
        instance.report_run_failed(run)
    elif status is dg.DagsterRunStatus.CANCELED:
        instance.report_run_canceled(run)
    return run.run_id


@pytest.mark.parametrize(
    ("status", "later", "expected"),
    [
        (dg.DagsterRunStatus.FAILURE, LONG_OVER + timedelta(minutes=1), True),
        (dg.DagsterRunStatus.CANCELED, LONG_OVER + timedelta(minutes=1), True),
        (dg.DagsterRunStatus.FAILURE, LONG_OVER - timedelta(minutes=1), False),
        (dg.DagsterRunStatus.STARTED, timedelta(days=9), False),
    ],
)
def test_a_run_is_over_an_hour_after_its_end(
    dagster_instance: dg.DagsterInstance,
    database: Database,
    status: dg.DagsterRunStatus,
    later: timedelta,
    expected: bool,
) -> None:
    assert over(dagster_instance, database, ended(dagster_instance, status), later) is expected


def test_of_a_run_that_dagster_does_not_know_nothing_is_known(
    dagster_instance: dg.DagsterInstance, database: Database
) -> None:
    assert not over(dagster_instance, database, "a notebook", timedelta(days=9))


def test_one_that_dagster_has_given_up_and_that_still_works_is_not_over(
    dagster_instance: dg.DagsterInstance, database: Database
) -> None:
    run_id = ended(dagster_instance, dg.DagsterRunStatus.FAILURE)
    worker = Worker(Stage.IMAGES, "2026-02", f"{run_id} 1a2b3c4d", timedelta(minutes=1))
    with database.transaction() as connection:
        items = [ClaimableItem("a/b#1", "v1", "a/b", 1.0)]
        claims.open_stage(connection, worker, run_id, RunOptions(), items)
        assert claims.claim(connection, worker)
    assert not over(dagster_instance, database, run_id, timedelta(days=9))
    with database.transaction() as connection:
        claims.release(connection, worker)
    assert over(dagster_instance, database, run_id, timedelta(days=9))
