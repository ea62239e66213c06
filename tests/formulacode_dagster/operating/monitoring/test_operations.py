"""The operators' view of the platform."""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.operating.backups.object_store import ObjectStore
from formulacode_dagster.operating.monitoring.operations import ResourceUsage, RunCounts, amount, draw
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.claims import ClaimableItem, Worker
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import Spent, add_spending
from formulacode_dagster.orchestration.operations import operations, runs_now
from resources.postgres import PostgresResource
from resources.watching import operations_now
from tests.support.command_line import FcData

NO_RUNS = RunCounts(queued=0, under_way=0, failed=0)
DAY = 86_400


@pytest.fixture
def platform(database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """With a mirror, a backup, a shared stage, a failed item, and a month that has spent something."""
    mirrors = tmp_path / "mirrors" / "acme"
    mirrors.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", str(mirrors / "tiny.git")], check=True)
    use = mirrors / "tiny.use"
    use.write_text("")
    os.utime(use, (time.time() - 3 * DAY,) * 2)
    manifest = tmp_path / "backups" / "2026-03-01T03-30-00Z" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({}))
    os.utime(manifest, (time.time() - DAY,) * 2)
    for name, value in {
        "FC_HOME": str(tmp_path),
        "FC_DATABASE_URL": database_url,
        "FC_MIRRORS_GB": "2",
        "LLM_TOKENS_PER_MONTH": "1000",
        "LLM_DOLLARS_PER_MONTH": "10",
    }.items():
        monkeypatch.setenv(name, value)
    worker = Worker(Stage.IMAGES, "2026-02", "leader", timedelta(minutes=1))
    with database.transaction() as connection:
        items = [ClaimableItem(f"acme/tiny#{number}", "v1", "acme/tiny", 1.0) for number in (1, 2, 3)]
        claims.open_stage(connection, worker, "leader", RunOptions(), items)
        claims.claim(connection, worker)
        entry = LedgerEntry(stage=Stage.IMAGES, month="2026-02", item="acme/tiny#9", state=ItemState.FAILED)
        ledger.record(connection, [entry])
        cost = Cost(tokens_in=900, tokens_out=50, dollars=2.5)
        add_spending(connection, [Spent("2026-02", Stage.CLASSIFICATIONS, "run", cost)])
    return database


def test_it_tells_queue_spending_disks_mirrors_and_backups(platform: Database) -> None:
    now = operations_now(platform, NO_RUNS)
    assert [(queue.stage, queue.month, queue.free) for queue in now.queues] == [(Stage.IMAGES, "2026-02", 2)]
    assert (now.items["failed"], now.items["done"]) == (1, 0)
    assert [(use.what, use.used, use.limit, use.unit) for use in now.budgets] == [
        ("2026-02", 950, 1000, "tokens"),
        ("2026-02", 2.5, 10, "dollars"),
    ]
    disk, mirrors, database = now.disks
    assert 0 < disk.share < 1
    assert (mirrors.limit, database.limit) == (2e9, None)
    assert database.used > 1e6
    assert now.mirrors == 1
    assert now.mirrors_unused_days == pytest.approx(3, abs=0.1)
    assert now.backup_hours == pytest.approx(24, abs=0.5)


def test_of_a_platform_that_has_done_nothing_it_tells_that(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    now = operations_now(database, NO_RUNS)
    assert (now.queues, now.budgets, now.mirrors) == ((), (), 0)
    assert (now.mirrors_unused_days, now.backup_hours) == (None, None)


@pytest.mark.slow
def test_the_newest_backup_may_be_only_in_the_store_which_may_be_gone(
    platform: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def newest(store: ObjectStore) -> datetime | None:
        asked.append(store.bucket)
        if store.bucket == "gone":
            raise OutsideSystemError("backup store", "cannot list the backups")
        return None if store.bucket == "empty" else datetime.now(tz=UTC) - timedelta(hours=2)

    monkeypatch.setattr(ObjectStore, "newest", newest)
    monkeypatch.setattr("resources.watching.STORE_ASKED_SECONDS", 1e12)
    for bucket, hours in (("full", 2), ("gone", 24), ("empty", 24)):
        monkeypatch.setenv("FC_BACKUP_STORE", f"s3://{bucket}/fc")
        for _ in range(2):
            assert operations_now(platform, NO_RUNS).backup_hours == pytest.approx(hours, abs=0.5)
    assert asked == ["full", "gone", "empty"], "a scrape asks it no more often than it changes"
    monkeypatch.setenv("FC_BACKUP_STORE", "s3://full/fc")
    monkeypatch.setenv("FC_BACKUP_DIR", str(tmp_path / "of another machine"))
    assert operations_now(platform, NO_RUNS).backup_hours == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.25e9, "bytes", "1.2 GB"), (3400, "tokens", "3,400 tokens"), (4.5, "dollars", "$4.50")],
)
def test_amounts_are_told_as_people_read_them(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


@pytest.mark.slow
def test_the_picture_has_a_bar_for_each_limit() -> None:
    uses = [
        ResourceUsage(what=name, used=used, limit=10, unit="dollars")
        for name, used in (("$a$", 1), ("b", 9.5), ("c", 30))
    ]
    one, three = draw(uses[:1]), draw([*uses, ResourceUsage(what="d", used=1, limit=None, unit="bytes")])
    assert one.startswith(b"\x89PNG")
    heights = [int.from_bytes(png[20:24], "big") for png in (one, three, draw(()))]
    assert heights[2] == heights[0] < heights[1]


def test_the_asset_keeps_figures_that_dagster_plots_and_a_picture(
    platform: Database, dagster_instance: dg.DagsterInstance
) -> None:
    done = dg.materialize([operations], instance=dagster_instance, resources={"postgres": PostgresResource()})
    (materialized,) = done.asset_materializations_for_node("operations")
    told = materialized.metadata
    assert (told["items_free"].value, told["items_failed"].value, told["dollars"].value) == (2, 1, 2.5)
    assert told["runs_under_way"].value >= 1, "its own"
    assert "data:image/png;base64," in str(told["limits"].value)
    assert [record.data["what"] for record in told["uses"].records][:2] == ["2026-02", "2026-02"]


def test_runs_that_failed_within_a_day_are_counted(dagster_instance: dg.DagsterInstance) -> None:
    @dg.job
    def failing() -> None:
        """Nothing."""

    before = runs_now(dagster_instance)
    for status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED):
        dagster_instance.create_run_for_job(failing, status=status)
    after = runs_now(dagster_instance)
    assert [getattr(after, name) - getattr(before, name) for name in RunCounts.model_fields] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.usefixtures("platform")
def test_the_command_shows_the_same(call_fc_data: FcData, database_url: str, tmp_path: Path) -> None:
    answer = call_fc_data("operations", FC_DATABASE_URL=database_url, LLM_TOKENS_PER_MONTH="1000")
    assert answer.returncode == 0, answer.stderr
    assert "shared: images of 2026-02, free items 2" in answer.stdout
    assert "950 tokens  1,000 tokens (95%)" in answer.stdout
