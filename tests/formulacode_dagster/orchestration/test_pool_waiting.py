"""A month that waits for another one's measurements leaves the processor to them, and is called when they are done."""

from __future__ import annotations

import threading
from datetime import timedelta

import dagster as dg
import pytest
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext

from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.orchestration.build import build_definitions

POOL = "measure"
MONTH = "2026-02"
SECONDS = 0.5


@dg.op(pool=POOL)
def wanting() -> None: ...


@dg.job(executor_def=dg.in_process_executor)
def waiting() -> None:
    wanting()


@dg.op(name=Stage.MEASUREMENTS.value, pool=POOL)
def measuring() -> None: ...


@dg.job(executor_def=dg.in_process_executor, partitions_def=dg.StaticPartitionsDefinition([MONTH, "2026-03"]))
def month_of_measurements() -> None:
    measuring()


@pytest.mark.slow
def test_a_run_sleeps_while_the_pool_is_taken_and_continues_later(tmp_path, monkeypatch) -> None:
    build_definitions()
    claim, claims = InstanceConcurrencyContext.claim, []

    def observed(self, key, step, priority=0):
        claims.append(claim(self, key, step, priority))
        if len(claims) == 1:
            leaving.start()
        return claims[-1]

    monkeypatch.setattr(InstanceConcurrencyContext, "claim", observed)
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        storage = instance.event_log_storage
        leaving = threading.Timer(SECONDS, lambda: storage.free_concurrency_slots_for_run("another run"))
        storage.set_concurrency_slots(POOL, 1)
        assert storage.claim_concurrency_slot(POOL, "another run", "step").is_claimed
        assert waiting.execute_in_process(instance=instance).success
        leaving.join()
    assert claims[0] is False, "the pool was full"
    assert claims[-1] is True
    assert len(claims) < 10, "between two looks it sleeps"


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_step_that_queues_just_after_a_release_is_not_forgotten(tmp_path, monkeypatch) -> None:
    build_definitions()
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        storage = instance.event_log_storage
        queue = storage.add_pending_step

        def queue_too_late(*arguments, **options):
            storage.free_concurrency_slots_for_run("another run")
            queue(*arguments, **options)

        storage.set_concurrency_slots(POOL, 1)
        assert storage.claim_concurrency_slot(POOL, "another run", "step").is_claimed
        monkeypatch.setattr(storage, "add_pending_step", queue_too_late)
        assert waiting.execute_in_process(instance=instance).success


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "month", "helpers", "joins"),
    [
        (dg.DagsterRunStatus.STARTED, MONTH, "2", True),
        (dg.DagsterRunStatus.STARTED, "2026-03", "2", False),
        (dg.DagsterRunStatus.FAILURE, MONTH, "2", False),
        (dg.DagsterRunStatus.STARTED, MONTH, "0", False),
    ],
)
def test_a_second_launch_joins_the_months_run_and_another_month_waits(
    tmp_path, monkeypatch, database: Database, database_url: str, status, month: str, helpers: str, joins: bool
) -> None:
    build_definitions()
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("FC_HELPER_RUNS", helpers)
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        storage = instance.event_log_storage
        leader = instance.create_run_for_job(month_of_measurements, status=status).run_id
        worker = claims.Worker(Stage.MEASUREMENTS, MONTH, "leader", timedelta(minutes=1))
        with database.transaction() as connection:
            claims.open_stage(connection, worker, leader, RunOptions(), [])
        storage.set_concurrency_slots(POOL, 1)
        assert storage.claim_concurrency_slot(POOL, leader, "measurements").is_claimed
        leaving = threading.Timer(3 * SECONDS, lambda: storage.free_concurrency_slots_for_run(leader))
        leaving.start()
        assert month_of_measurements.execute_in_process(instance=instance, partition_key=month).success
        assert storage.get_concurrency_info(POOL).slot_count == 1
        assert (leader in storage.get_concurrency_run_ids()) is joins, "whoever waited had to wait for it to leave"
        assert storage.get_concurrency_info(POOL).pending_step_count == 0
        leaving.join()
        assert storage.get_concurrency_run_ids() == set()
