"""The stage `published_images`: push measured images, and pull them back by digest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from formulacode_dagster.building.engines.protocol import Engine, keeps
from formulacode_dagster.models.errors import NotAsked
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.items import Cost, ItemKind, Stage
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.models.release import PublishedImage
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import IMAGES, PUBLISHED_IMAGES
from formulacode_dagster.operating.store.pull_requests import done_in

from .publishing import Registry


@dataclass(frozen=True)
class PublishedImageTools:
    """The registry, and the engine that has the images."""

    registry: Registry | None
    """None if no registry is configured: images are skipped."""
    registry_url: str
    concurrency: int
    engine: Engine | None = None
    """Engine of this machine if several runs share the stage; None for a run that works by itself."""


async def run(stage: StageRun, tools: PublishedImageTools) -> StageSummary:
    """Push the pending images of the month, or this run's part of them; raises as `run_items`."""
    with stage.database.transaction() as connection:
        measured = done_in(connection, stage.month, Stage.MEASUREMENTS)
        built = IMAGES.read_keys(connection, stage.month, [pr.key for pr in measured])
    items = [
        WorkItem(
            pr.item,
            fingerprint(Stage.PUBLISHED_IMAGES, built[pr.key].digest, tools.registry_url),
            built[pr.key],
            is_here=tools.engine is None or keeps(tools.engine, built[pr.key]),
        )
        for pr in measured
    ]
    publish = in_thread(partial(_publish, stage.month, tools.registry))
    concurrency = min(stage.options.concurrency, tools.concurrency)
    return await run_items(stage, ItemKind.PULL_REQUEST, items, publish, PUBLISHED_IMAGES.save, concurrency=concurrency)


def _publish(month: str, registry: Registry | None, item: WorkItem[BuiltImage]) -> Outcome[PublishedImage]:
    if item.value.engine is EngineName.PROCESS:
        raise NotAsked(SkipReason.PROCESS_ENGINE, "built in a folder by the process engine: there is no image to push")
    if registry is None:
        raise NotAsked(SkipReason.NO_REGISTRY, "FC_REGISTRY_URL names no registry")
    pushed = registry.publish(item.value, month=month)
    moved = pushed.pushed_bytes + pushed.pulled_bytes
    return Outcome(pushed, Cost(bytes=moved), f"{pushed.reference}@{pushed.digest}")
