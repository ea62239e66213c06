"""Freshness of the month's assets: the day by which a release and its report are due."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.definitions.freshness_evaluator import FRESHNESS_EVALUATORS_BY_POLICY_TYPE
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import freeze_time

from assets.all import STAGE_ASSETS
from assets.published_dataset import release_uri
from formulacode_dagster.models.items import Stage
from formulacode_dagster.orchestration.build import build_definitions

PROMISED = (Stage.PUBLISHED_DATASET, Stage.MONTHLY_REPORT)


def test_the_release_and_the_report_have_a_day_by_which_they_are_made() -> None:
    graph = build_definitions().resolve_asset_graph()
    promised = [asset.stage for asset in STAGE_ASSETS if graph.get(asset.definition.key).freshness_policy is not None]
    assert sorted(promised) == sorted((*PROMISED, Stage.REPLAYS))


@pytest.mark.parametrize("stage", PROMISED)
@pytest.mark.parametrize(
    ("made", "looked", "state"),
    [
        (None, "2026-03-28T07:00", FreshnessState.UNKNOWN),
        ("2026-03-25T03:00", "2026-03-28T07:00", FreshnessState.PASS),
        ("2026-03-25T03:00", "2026-04-28T05:59", FreshnessState.PASS),
        ("2026-03-25T03:00", "2026-04-28T06:01", FreshnessState.FAIL),
        ("2026-04-24T23:00", "2026-04-28T06:01", FreshnessState.FAIL),
        ("2026-04-29T00:00", "2026-04-29T00:01", FreshnessState.PASS),
    ],
)
def test_it_is_late_from_the_day_on_which_a_month_is_due_until_it_is_made(
    stage: Stage, made: str | None, looked: str, state: FreshnessState
) -> None:
    node = build_definitions().resolve_asset_graph().get(dg.AssetKey(stage.value))
    policy = node.freshness_policy
    assert policy is not None
    with dg.DagsterInstance.ephemeral() as instance:
        if made:
            with freeze_time(at(made)):
                instance.report_runless_asset_event(dg.AssetMaterialization(node.key))
        with freeze_time(at(looked)):
            evaluator = FRESHNESS_EVALUATORS_BY_POLICY_TYPE[type(policy)]()
            told = asyncio.run(evaluator.evaluate_freshness(LoadingContextForTest(instance), node))
    assert told is state


def at(moment: str) -> datetime:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC)


def test_assets_name_their_view_and_the_line_of_their_body() -> None:
    graph = build_definitions().resolve_asset_graph()
    metadata = graph.get(dg.AssetKey("images")).metadata
    assert metadata["dagster/table_name"] == "public.images"
    (reference,) = metadata["dagster/code_references"].code_references
    line = Path(reference.file_path).read_text().splitlines()[reference.line_number - 1]
    assert "stage_asset" in line or line.startswith("def images")


def test_a_release_has_an_address_for_programs(tmp_path: Path) -> None:
    tag = "formulacode@2026-03"
    assert release_uri("hub:formulacode/tasks", tag) == f"hf://datasets/formulacode/tasks@{tag}"
    assert release_uri(str(tmp_path), tag) == tmp_path.as_uri()
