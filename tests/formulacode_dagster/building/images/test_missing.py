"""Images of a machine that is gone, or that were pruned here, and who builds them once more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from formulacode_dagster.building.images.stage import missing_images
from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.claims import Worker
from formulacode_dagster.operating.runner.pending import is_pending
from formulacode_dagster.operating.runner.work import RunRole, Sharing, StageRun, WorkItem
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from tests.records import MONTH, make_image, make_measurement, make_merged, make_pull_request

HERE, ELSEWHERE = "here", "elsewhere"
BUILT = datetime(2026, 3, 1, tzinfo=UTC)
LATER = BUILT + timedelta(hours=1)
STORED: dict[int, tuple[str, bool]] = {1: (ELSEWHERE, False), 2: (HERE, False), 3: (HERE, True), 4: (ELSEWHERE, True)}
"""The store of each image, and whether it is found in this one."""


@pytest.fixture
def prs(database: Database) -> list[PullRequest]:
    prs = [make_pull_request(make_merged(number=number)) for number in STORED]
    with database.transaction() as connection:
        artifacts.MERGED_PULL_REQUESTS.save(connection, [pr.facts for pr in prs])
        save_changes(connection, [(pr.change, b"diff\n") for pr in prs])
        for pr in prs:
            number = pr.facts.number
            store, _ = STORED[number]
            artifacts.IMAGES.save(connection, [make_image(number=number, store=store, digest=f"sha256:{number}")])
            ledger.record(connection, [ended(Stage.IMAGES, pr.item, BUILT)])
    return prs


def ended(stage: Stage, item: str, at: datetime, reason: str = "") -> LedgerEntry:
    state = ItemState.FAILED if reason else ItemState.DONE
    return LedgerEntry(stage=stage, month=MONTH, item=item, state=state, reason=reason, inputs="v1", finished_at=at)


def missing(database: Database, prs: list[PullRequest], part: RunRole | None = None) -> list[int]:
    engine: Any = SimpleNamespace(store=HERE, exists=lambda image: STORED[image.number][1])
    sharing = None if part is None else Sharing(part, Worker(Stage.IMAGES, MONTH, "run", timedelta(seconds=60)))
    run = StageRun(database, Stage.IMAGES, MONTH, "run", RunOptions(), sharing)
    return [int(item.partition("#")[2]) for item in missing_images(run, engine, prs)]


def test_a_single_run_builds_missing_images_and_a_shared_one_local_ones(
    database: Database, prs: list[PullRequest]
) -> None:
    assert missing(database, prs) == [1, 2]
    assert missing(database, prs, RunRole.LEADS) == [2]
    assert missing(database, prs, RunRole.HELPS) == missing(database, prs, RunRole.JOINS) == []


@pytest.mark.parametrize("stage", [Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES])
def test_the_leading_run_builds_what_no_worker_had_and_retries(
    database: Database, prs: list[PullRequest], stage: Stage
) -> None:
    first = prs[0].item
    gone = ended(stage, first, LATER, FailureKind.IMAGE_GONE)
    with database.transaction() as connection:
        artifacts.MEASUREMENTS.save(connection, [make_measurement({}, number=1), make_measurement({}, number=2)])
        ledger.record(connection, [gone])
    assert missing(database, prs) == missing(database, prs, RunRole.LEADS) == [1]
    assert is_pending(WorkItem(first, "v1", None), gone)
    with database.transaction() as connection:
        # built since, by a helper with a store of its own
        ledger.record(connection, [ended(Stage.IMAGES, first, LATER + timedelta(hours=1))])
    assert missing(database, prs, RunRole.LEADS) == []


def test_a_measurement_with_another_failure_needs_no_image_of_a_worker(
    database: Database, prs: list[PullRequest]
) -> None:
    with database.transaction() as connection:
        ledger.record(connection, [ended(Stage.MEASUREMENTS, prs[0].item, LATER, FailureKind.TIMEOUT)])
    assert missing(database, prs, RunRole.LEADS) == [2]
