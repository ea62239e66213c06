"""How many images are pushed at the same time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.release import PublishedImage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.releasing.registries.stage import PublishedImageTools, run
from tests.records import make_image, make_merged, make_pull_request, make_spec

MONTH = "2026-02"
IMAGES = 4
DIGEST = "sha256:" + "1" * 64


class CountingRegistry:
    """Publish nothing, and block until *at_once* are here; report the maximum."""

    def __init__(self, at_once: int) -> None:
        self._all_here = threading.Barrier(at_once)
        self._lock = threading.Lock()
        self._here = 0
        self.most = 0

    def publish(self, image: BuiltImage, *, month: str) -> PublishedImage:
        """As `Registry.publish`."""
        with self._lock:
            self._here += 1
            self.most = max(self.most, self._here)
        self._all_here.wait(timeout=120)
        with self._lock:
            self._here -= 1
        return PublishedImage(
            month=month,
            repository_id=image.repository_id,
            number=image.number,
            reference=f"registry.test/acme/tasks:{image.number}",
            digest=DIGEST,
            pulled_digest=DIGEST,
            image_digest=image.digest,
            size_bytes=1,
        )


@pytest.fixture
def measured(database: Database) -> None:
    """A month with four tasks to publish."""
    with database.transaction() as connection:
        for number in range(1, IMAGES + 1):
            facts = make_merged(month=MONTH, repository_id=42, repository="acme/fast", number=number)
            pr = make_pull_request(facts, base_sha="b" * 40)
            spec = make_spec(task_id=pr.task_id, repository="acme/fast", repository_id=42)
            image = make_image(month=MONTH, repository_id=42, number=number, spec=spec, engine="docker", digest=DIGEST)
            artifacts.MERGED_PULL_REQUESTS.save(connection, [facts])
            artifacts.IMAGES.save(connection, [image])
            save_changes(connection, [(pr.change, b"diff\n")])
            entry = LedgerEntry(stage=Stage.MEASUREMENTS, month=MONTH, item=pr.item, state=ItemState.DONE)
            ledger.record(connection, [entry])


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("setting", "concurrency", "at_once"), [(2, 8, 2), (4, 8, 4), (4, 1, 1), (1, 8, 1)])
def test_as_many_are_pushed_at_once_as_the_setting_and_the_run_allow(
    database: Database, setting: int, concurrency: int, at_once: int
) -> None:
    client: Any = CountingRegistry(at_once)
    stage = StageRun(database, Stage.PUBLISHED_IMAGES, MONTH, "run", RunOptions(concurrency=concurrency))
    summary = run_loop(run(stage, PublishedImageTools(client, "registry.test", setting)))
    assert (summary.count(ItemState.DONE), client.most) == (IMAGES, at_once)
