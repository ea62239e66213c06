"""*Terminate* in the UI: the run ends within seconds, in order, and what it had begun is still to do."""

from __future__ import annotations

import json
import time

import pytest

from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.store import ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MONTH = "2026-01"
REPOSITORY = {"repositoryLocationName": "formulacode", "repositoryName": "__repository__"}
ENDED_SECONDS = 10.0
TERMINATE = """
mutation Terminate($id: String!) {
  terminateRun(runId: $id) { __typename ... on TerminateRunFailure { message } ... on PythonError { message } }
}
"""


def test_a_measurement_is_terminated(demo, ui, demo_database) -> None:
    sessions = demo.home / "builds" / "sessions"
    run = ui.launch(
        {
            "selector": {**REPOSITORY, "pipelineName": f"{Stage.MEASUREMENTS.value}_only"},
            "runConfigData": json.dumps(
                {"ops": {Stage.MEASUREMENTS.value: {"config": {"force": True, "reason": "a test"}}}}
            ),
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": MONTH}]},
            "mode": "default",
        }
    )
    deadline = time.monotonic() + 120
    while not (any(sessions.glob("*/repository")) and ui.wait_for_run(run, 0) == "STARTED"):
        assert time.monotonic() < deadline, ui.wait_for_run(run, 0)
        time.sleep(0.1)
    started = time.monotonic()
    answer = ui.graphql(TERMINATE, id=run)["terminateRun"]
    assert answer["__typename"] == "TerminateRunSuccess", answer
    assert ui.wait_for_run(run, 60) == "CANCELED"
    assert time.monotonic() - started < ENDED_SECONDS
    assert list(sessions.iterdir()) == []
    with demo_database.transaction() as connection:
        standing = ledger.entries_of(connection, MONTH, Stage.MEASUREMENTS)
    assert not [entry for entry in standing if entry.state is ItemState.FAILED]
