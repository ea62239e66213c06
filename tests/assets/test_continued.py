"""The runs whose work a relaunched run continues."""

from __future__ import annotations

import dagster as dg

from assets.materialize import HELPS, continued_runs, helped
from formulacode_dagster.models.items import Stage

MONTH = "2026-02"
FAILED, SUCCESS = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS


@dg.job
def some_job() -> None:
    """Stands for any run."""


def made(
    instance: dg.DagsterInstance,
    status: dg.DagsterRunStatus = FAILED,
    *,
    parent: dg.DagsterRun | None = None,
    tags: dict[str, str] | None = None,
) -> dg.DagsterRun:
    repeats = {"parent_run_id": parent.run_id, "root_run_id": parent.root_run_id or parent.run_id} if parent else {}
    return instance.create_run_for_job(some_job, status=status, tags=tags, **repeats)


def test_a_relaunched_run_continues_its_failed_predecessors_and_helpers(
    dagster_instance: dg.DagsterInstance,
) -> None:
    succeeded = made(dagster_instance, SUCCESS)
    first = made(dagster_instance, parent=succeeded)
    second = made(dagster_instance, dg.DagsterRunStatus.CANCELED, parent=first)
    third = made(dagster_instance, dg.DagsterRunStatus.STARTED, parent=second)
    helper = made(dagster_instance, SUCCESS, tags={HELPS: helped(Stage.IMAGES, MONTH, first.run_id)})
    made(dagster_instance, SUCCESS, tags={HELPS: helped(Stage.MEASUREMENTS, MONTH, first.run_id)})
    made(dagster_instance, SUCCESS, tags={HELPS: helped(Stage.IMAGES, MONTH, succeeded.run_id)})
    found = continued_runs(dagster_instance, third, Stage.IMAGES, MONTH)
    assert found == {run.run_id for run in (first, second, third, helper)}
    assert continued_runs(dagster_instance, first, Stage.REPOSITORIES, MONTH) == {first.run_id}
