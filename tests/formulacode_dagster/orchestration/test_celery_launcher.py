"""The launcher for Celery: whose worker it calls dead, and what it does with a run that is to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher import LaunchRunContext, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher

from formulacode_dagster.models.items import MONTH_STAGES
from formulacode_dagster.orchestration.celery_launcher import AskingCeleryRunLauncher
from formulacode_dagster.orchestration.placement import BUILD, IO, MEASURE, QUEUE

TASK = "task-1"
STARTED, CANCELING = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING


class Workers:
    """Stands for Celery: what each worker says of the task, and who began it."""

    def __init__(self, says: Mapping[str, str], began: object) -> None:
        self.says, self.info = dict(says), began
        self.asked: list[Sequence[str] | None] = []
        self.revoked = False
        self.control = self

    def AsyncResult(self, task_id: str) -> Workers:
        """Called as Celery calls it."""
        assert task_id == TASK
        return self

    def revoke(self, *, terminate: bool) -> None:
        self.revoked = terminate

    def inspect(self, *, destination: Sequence[str] | None, timeout: float) -> Workers:
        self.asked.append(destination)
        return self

    def query_task(self, task_id: str) -> dict[str, Any] | None:
        asked = self.asked[-1]
        answers = {
            worker: {task_id: [state, {}]} for worker, state in self.says.items() if asked is None or worker in asked
        }
        return answers or None


def launcher(workers: Workers, unheard_seconds: int = 0) -> AskingCeleryRunLauncher:
    made = AskingCeleryRunLauncher(unheard_seconds, default_queue="io", broker="memory://", backend="cache+memory://")
    made.celery = workers
    return made


@dg.job
def some_job() -> None:
    """Stands for any run."""


@pytest.fixture
def run(dagster_instance: dg.DagsterInstance) -> dg.DagsterRun:
    """One that is under way."""
    return dagster_instance.create_run_for_job(some_job, status=STARTED, tags={"dagster-celery/task_id": TASK})


@pytest.mark.parametrize(
    ("says", "began", "asked", "status"),
    [
        ({"one@here": "active"}, {"hostname": "one@here"}, [["one@here"]], WorkerStatus.RUNNING),
        ({"two@there": "active"}, {"hostname": "one@here"}, [["one@here"], None], WorkerStatus.RUNNING),
        ({"two@there": "active"}, 0, [None], WorkerStatus.RUNNING),
        ({"two@there": "reserved"}, {"hostname": "one@here"}, [["one@here"], None], WorkerStatus.FAILED),
        ({}, {"hostname": "one@here"}, [["one@here"], None], WorkerStatus.FAILED),
    ],
    ids=["who began it says so", "another does", "its result is gone", "it waits a second time", "nobody answers"],
)
def test_a_run_lives_while_a_worker_says_that_it_is_at_it(
    run: dg.DagsterRun, says: dict[str, str], began: object, asked: list[object], status: WorkerStatus
) -> None:
    workers = Workers(says, began)
    assert launcher(workers).check_run_worker_health(run).status is status
    assert workers.asked == asked


@pytest.mark.parametrize(
    ("assets", "checks", "tags", "queue"),
    [
        (MONTH_STAGES, [], {}, MEASURE),
        (["images"], [], {}, BUILD),
        (["environments", "images"], [], {}, BUILD),
        (["repositories", "pull_requests"], [], {}, IO),
        (["images", "measurements"], [], {}, MEASURE),
        ([], ["measurements"], {}, MEASURE),
        (["images"], [], {QUEUE: IO}, IO),
        (["some_dashboard"], [], {}, None),
        ([], [], {}, None),
    ],
)
def test_a_run_of_the_asset_graph_gets_the_queue_of_its_stages(
    dagster_instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    assets: Sequence[str],
    checks: Sequence[str],
    tags: dict[str, str],
    queue: str | None,
) -> None:
    launched: list[dg.DagsterRun] = []
    monkeypatch.setattr(CeleryRunLauncher, "launch_run", lambda _, context: launched.append(context.dagster_run))
    selected = {
        "asset_selection": frozenset(map(dg.AssetKey, assets)) or None,
        "asset_check_selection": frozenset(dg.AssetCheckKey(dg.AssetKey(name), "any") for name in checks) or None,
    }
    run = dagster_instance.create_run_for_job(some_job, tags=tags)
    launching = launcher(Workers({}, None))
    launching.register_instance(dagster_instance)
    launching.launch_run(LaunchRunContext(run._replace(**selected), None))
    stored = dagster_instance.get_run_by_id(run.run_id)
    assert stored is not None
    assert launched[0].tags.get(QUEUE) == stored.tags.get(QUEUE) == queue


def test_silence_has_to_last(run: dg.DagsterRun) -> None:
    workers = Workers({}, None)
    patient = launcher(workers, unheard_seconds=60)
    assert patient.check_run_worker_health(run).status is WorkerStatus.RUNNING
    patient._unheard_since[run.run_id] -= 61
    said = patient.check_run_worker_health(run)
    assert (said.status, said.msg) == (WorkerStatus.FAILED, "for 61 s, no worker was at it")

    assert patient.check_run_worker_health(run).status is WorkerStatus.RUNNING
    patient._unheard_since[run.run_id] = 0.0
    workers.says["one@here"] = "active"
    assert patient.check_run_worker_health(run).status is WorkerStatus.RUNNING
    workers.says.clear()
    assert patient.check_run_worker_health(run).status is WorkerStatus.RUNNING, "it was heard of in between"


def test_a_run_that_is_ended_is_shown_as_being_canceled(
    run: dg.DagsterRun, dagster_instance: dg.DagsterInstance
) -> None:
    workers = Workers({}, None)
    ending = launcher(workers)
    ending.register_instance(dagster_instance)
    assert ending.terminate(run.run_id)
    assert workers.revoked
    canceling = dagster_instance.get_run_by_id(run.run_id)
    assert canceling is not None
    assert canceling.status is CANCELING
    dagster_instance.report_run_canceled(canceling)
    assert not ending.terminate(run.run_id), "it has ended"
