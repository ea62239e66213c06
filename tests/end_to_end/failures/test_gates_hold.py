"""A gate that failed stays shut for later runs, until its cause is mended."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from formulacode_dagster.models.items import ItemState, Stage
from sandbox.github.faults import Fault, Faults, ScriptedFault

pytestmark = pytest.mark.slow


def test_a_gate_that_failed_holds_in_a_later_run_until_its_cause_is_mended(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS)
    with platform.serve() as served:
        with platform.database.transaction() as connection:
            connection.execute(
                text("UPDATE intake_counts SET reported = reported + 1 WHERE repository LIKE '%/rollwin'")
            )
        checked = platform.run(Stage.PULL_REQUESTS)
        assert not checked.succeeded
        checked.tells("check failed: pull_requests/counts_match", "signal-kit/rollwin")

        refused = platform.run(Stage.CLASSIFICATIONS)
        assert not refused.succeeded
        refused.tells(
            "failed: classifications: the gate pull_requests/counts_match is shut for 2026-02",
            "signal-kit/rollwin",
            "Mend the cause, materialize pull_requests of 2026-02 again with its checks, then this asset",
        )
        assert len(refused.complaints) == 1
        assert platform.entries(Stage.CLASSIFICATIONS) == {}
        assert served.calls("model") == 0

        # taking the window in again is what mends it
        assert platform.run(Stage.PULL_REQUESTS, force=True, only=("signal-kit/rollwin",)).succeeded
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
    assert platform.states(Stage.CLASSIFICATIONS)[ItemState.DONE] == 14


def test_a_gate_without_a_verdict_is_shut_too(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS)
    with platform.database.transaction() as connection:
        connection.execute(text("DELETE FROM check_verdicts WHERE check_name = 'window_and_shas_valid'"))
    with platform.serve():
        refused = platform.run(Stage.CLASSIFICATIONS)
    assert not refused.succeeded
    refused.tells("pull_requests/window_and_shas_valid is not judged", "Materialize pull_requests of 2026-02")


def test_a_stage_that_dies_shuts_the_gates_that_it_had_passed(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS)
    dead = ScriptedFault(endpoint="graphql", call=2, times=10_000, fault=Fault.BAD_GATEWAY)
    with platform.serve(faults=Faults(scripted=(dead,))):
        assert not platform.run(Stage.PULL_REQUESTS, force=True).succeeded
        refused = platform.run(Stage.CLASSIFICATIONS)
        assert not refused.succeeded
        refused.tells("is not judged for 2026-02", "Materialize pull_requests of 2026-02 with its checks first")
        assert platform.entries(Stage.CLASSIFICATIONS) == {}
    with platform.serve():
        assert platform.run(Stage.PULL_REQUESTS).succeeded
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
