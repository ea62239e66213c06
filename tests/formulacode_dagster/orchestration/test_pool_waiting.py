"""A month that waits for another one's measurements leaves the processor to them, and is called when they are done."""

from __future__ import annotations

import threading

import dagster as dg
import pytest
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext

from formulacode_dagster.orchestration.build import build_definitions

POOL = "measure"
SECONDS = 0.5


@dg.op(pool=POOL)
def wanting() -> None: ...


@dg.job(executor_def=dg.in_process_executor)
def waiting() -> None:
    wanting()


@pytest.mark.slow
def test_a_run_sleeps_while_another_has_the_pool_and_goes_on_once_it_is_free(tmp_path, monkeypatch) -> None:
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
def test_a_step_that_queues_just_after_the_pool_became_free_is_not_forgotten(tmp_path, monkeypatch) -> None:
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
