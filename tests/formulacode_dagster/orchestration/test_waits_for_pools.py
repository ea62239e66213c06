"""A run that waits for a pool says for which, and who holds it."""

from __future__ import annotations

import threading

import dagster as dg

from formulacode_dagster.orchestration.runs import pool_waits, reporting_pool_waits


def test_a_run_that_waits_names_pool_and_holder() -> None:
    said, heard = [], threading.Event()

    def say(text: str) -> None:
        said.append(text)
        heard.set()

    with dg.DagsterInstance.ephemeral() as instance:
        storage = instance.event_log_storage
        storage.set_concurrency_slots("build", 1)
        storage.claim_concurrency_slot("build", "holder", "images")
        assert pool_waits(instance, "mine") == []
        storage.claim_concurrency_slot("build", "mine", "images")
        with reporting_pool_waits(instance, "mine", say, seconds=0.01):
            assert heard.wait(30)
        assert said[0] == "images waits for the pool build, held by run holder"
        assert pool_waits(instance, "holder") == []
