"""Launches from the UI: a backfill of months, and one asset of one month for one item."""

from __future__ import annotations

import json
import time

import pytest

from assets.problem_statements import problem_statements
from formulacode_dagster.models.items import MONTH_STAGES, ItemState, Stage
from formulacode_dagster.operating.store import ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MONTHS = ("2026-01", "2026-02")
REPOSITORY = {"repositoryLocationName": "formulacode", "repositoryName": "__repository__"}

LAUNCH_BACKFILL = """
mutation Launch($parameters: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $parameters) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
BACKFILL = """
query Backfill($id: String!) {
  partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } }
}
"""
RUNS = """
query Runs($filter: RunsFilter!) {
  runsOrError(filter: $filter) {
    ... on Runs {
      results {
        status
        tags { key value }
        assetMaterializations {
          assetKey { path }
          partition
          metadataEntries { label ... on IntMetadataEntry { intValue } }
        }
      }
    }
  }
}
"""
CHECKS = """
query Checks($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) {
    ... on AssetNode {
      assetChecksOrError {
        ... on AssetChecks { checks { name executionForLatestMaterialization { status } } }
      }
    }
  }
}
"""


def key(stage: Stage) -> dict[str, list[str]]:
    return {"path": [stage.value]}


def test_a_backfill_of_two_months_launched_as_the_ui_does_succeeds(ui) -> None:
    parameters = {"assetSelection": [key(stage) for stage in MONTH_STAGES], "partitionNames": list(MONTHS)}
    launched = ui.graphql(LAUNCH_BACKFILL, parameters=parameters)["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    backfill = launched["backfillId"]

    deadline = time.monotonic() + 900
    status = ""
    # the daemon looks at backfills every 30 s
    while time.monotonic() < deadline and not status.startswith(("COMPLETED", "FAILED", "CANCELED")):
        time.sleep(2)
        status = ui.graphql(BACKFILL, id=backfill)["partitionBackfillOrError"]["status"]
    assert status == "COMPLETED_SUCCESS", ui.log.read_text()[-4000:]

    tags = [{"key": "dagster/backfill", "value": backfill}]
    runs = ui.graphql(RUNS, filter={"tags": tags})["runsOrError"]["results"]
    assert [run["status"] for run in runs] == ["SUCCESS", "SUCCESS"]
    made = {
        (stored["partition"], stored["assetKey"]["path"][0]) for run in runs for stored in run["assetMaterializations"]
    }
    assert made == {(month, stage.value) for month in MONTHS for stage in MONTH_STAGES}
    redone = {
        stored["assetKey"]["path"][0]: entry["intValue"]
        for run in runs
        for stored in run["assetMaterializations"]
        for entry in stored["metadataEntries"]
        if entry["label"] == "worked_in_this_run" and entry["intValue"]
    }
    # items that were skipped are looked at again; everything else was done by the demo
    assert set(redone) <= {Stage.PUBLISHED_IMAGES.value, Stage.GRADINGS.value}


def test_one_asset_of_one_month_for_one_item_touches_nothing_else(ui, demo_database) -> None:
    month, stage = "2026-02", Stage.PROBLEM_STATEMENTS
    before = entries(demo_database, month)
    chosen = next(item for (where, item), entry in before.items() if where is stage and entry.state is ItemState.DONE)
    config = {"only": [chosen], "force": True}
    run = ui.launch(
        {
            "selector": {
                **REPOSITORY,
                "pipelineName": "__ASSET_JOB",
                "assetSelection": [key(stage)],
                "assetCheckSelection": [
                    {"assetKey": key(stage), "name": check.name} for check in problem_statements.checks
                ],
            },
            "runConfigData": json.dumps({"ops": {stage.value: {"config": config}}}),
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": month}]},
            "mode": "default",
        }
    )
    assert ui.wait_for_run(run) == "SUCCESS", ui.log.read_text()[-4000:]

    after = entries(demo_database, month)
    assert {name for name in after if after[name] != before.get(name)} == {(stage, chosen)}
    assert after[stage, chosen].run_id == run
    assert after[stage, chosen].state is ItemState.DONE
    runs = ui.graphql(RUNS, filter={"runIds": [run]})["runsOrError"]["results"]
    assert [made["assetKey"]["path"] for made in runs[0]["assetMaterializations"]] == [[stage.value]]
    checks = ui.graphql(CHECKS, asset=key(stage))["assetNodeOrError"]["assetChecksOrError"]["checks"]
    assert [(check["name"], check["executionForLatestMaterialization"]["status"]) for check in checks] == [
        (check.name, "SUCCEEDED") for check in problem_statements.checks
    ]


def test_a_misspelt_item_is_refused_before_anything_is_done(ui, demo_database) -> None:
    before = entries(demo_database, "2026-02")
    run = ui.launch(
        {
            "selector": {**REPOSITORY, "pipelineName": "images_only"},
            "runConfigData": json.dumps({"ops": {"images": {"config": {"only": ["graphkit 4"]}}}}),
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": "2026-02"}]},
            "mode": "default",
        }
    )
    assert ui.wait_for_run(run) == "FAILURE"
    assert entries(demo_database, "2026-02") == before


def entries(database, month):
    with database.transaction() as connection:
        return {(entry.stage, entry.item): entry for entry in ledger.entries_of(connection, month)}
