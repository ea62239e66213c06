"""`published_images`: measured images in the registry, pulled back by digest."""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from formulacode_dagster.building.engines.protocol import keeps
from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.errors import NotAsked
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.models.release import PublishedImage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import IMAGES, MEASUREMENTS, PUBLISHED_IMAGES
from formulacode_dagster.operating.store.pull_requests import done_in
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.releasing.release import checks as verdicts
from resources.containers import ContainersResource
from resources.postgres import PostgresResource
from resources.registry import RegistryResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run
from .measurements import measurements
from .partitions import MONTHS
from .stage_asset import stage_asset


@month_check(blocking=True)
def every_digest_pulled(month: JudgedMonth) -> Judgement:
    """Every published image was measured, and pulled back by digest."""
    published = month.done_rows(PUBLISHED_IMAGES, Stage.PUBLISHED_IMAGES)
    return verdicts.every_digest_pulled(month.key, published, month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS))


@stage_asset(
    Stage.PUBLISHED_IMAGES,
    deps=[measurements],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"docker", "postgres"},
    description="One row is an image that was measured, pushed, and pulled back by digest. Nothing else is pushed.",
    columns=RELATIONS["published_images"].columns,
    is_shared=True,
    checks=[failures_within_budget, every_digest_pulled],
)
def published_images(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    containers: ContainersResource,
    registry: RegistryResource,
) -> dg.MaterializeResult[Any]:
    """Push the images of the tasks whose speed-up is real; skip, with the reason, where there is nowhere to push."""
    with stage_run(context, postgres, published_images, config) as run:
        summary = publish_images(run, containers, registry)
        with run.database.transaction() as connection:
            rows = PUBLISHED_IMAGES.read(connection, run.month)
    skipped = {
        entry.detail
        for entry in summary.standing
        if entry.reason in (SkipReason.PROCESS_ENGINE, SkipReason.NO_REGISTRY)
    }
    transfer = {
        "megabytes_pushed": _megabytes(row.pushed_bytes for row in rows),
        "megabytes_saved": _megabytes(row.saved_bytes for row in rows),
        "megabytes_pulled_back": _megabytes(row.pulled_bytes for row in rows),
        "public": sum(row.is_public is True for row in rows),
    }
    why = {"skipped_because": "; ".join(sorted(skipped))} if skipped else {}
    return report(context, summary, rows=len(rows), **transfer, **why)


def publish_images(run: StageRun, containers: ContainersResource, registry: RegistryResource) -> StageSummary:
    """Push what is pending of the month, or this run's part of it."""
    client = registry.client()
    with run.database.transaction() as connection:
        measured = done_in(connection, run.month, Stage.MEASUREMENTS)
        built = IMAGES.read_keys(connection, run.month, [pr.key for pr in measured])
    # only where several machines push does it matter which of them has an image
    engine = containers.engine_for(run.database, run.month)[0] if run.sharing else None

    def publish(item: WorkItem[BuiltImage]) -> Outcome[PublishedImage]:
        if item.value.engine is EngineName.PROCESS:
            raise NotAsked(
                SkipReason.PROCESS_ENGINE, "built in a folder by the process engine: there is no image to push"
            )
        if client is None:
            raise NotAsked(SkipReason.NO_REGISTRY, "FC_REGISTRY_URL names no registry")
        pushed = client.publish(item.value, month=run.month)
        moved = pushed.pushed_bytes + pushed.pulled_bytes
        return Outcome(pushed, Cost(bytes=moved), f"{pushed.reference}@{pushed.digest}")

    items = [
        WorkItem(
            pr.item,
            fingerprint(Stage.PUBLISHED_IMAGES, built[pr.key].digest, registry.settings.registry_url),
            built[pr.key],
            is_here=engine is None or keeps(engine, built[pr.key]),
        )
        for pr in measured
    ]
    at_once = min(run.options.max_concurrency, registry.settings.pushed_at_once)
    return run_loop(run_items(run, items, in_thread(publish), PUBLISHED_IMAGES.save, concurrency=at_once))


def _megabytes(sizes: Iterable[int]) -> float:
    return round(sum(sizes) / 1e6, 3)
