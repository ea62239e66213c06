"""`published_images`: measured images in the registry, pulled back by digest."""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import MEASUREMENTS, PUBLISHED_IMAGES
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.releasing.registries import checks as verdicts
from formulacode_dagster.releasing.registries.stage import run
from resources.containers import ContainersResource
from resources.postgres import PostgresResource
from resources.registry import RegistryResource
from resources.tools import published_image_tools

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run
from .measurements import measurements
from .partitions import MONTHS
from .stage_asset import stage_asset


@month_check(blocking=True)
def every_digest_pulled(month: JudgedMonth) -> CheckFinding:
    """Every published image was measured, and pulled back by digest."""
    published = month.done_rows(PUBLISHED_IMAGES, Stage.PUBLISHED_IMAGES)
    return verdicts.every_digest_pulled(month.key, published, month.done_rows(MEASUREMENTS, Stage.MEASUREMENTS))


@stage_asset(
    Stage.PUBLISHED_IMAGES,
    deps=[measurements],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"docker", "postgres"},
    description="One row is an image that was measured, pushed, and pulled back by digest. No other image is pushed.",
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
    """Push the images of the tasks whose speed-up is real; skip, with the reason, without a registry."""
    with stage_run(context, postgres, published_images, config) as stage:
        summary = run_loop(run(stage, published_image_tools(stage, containers, registry)))
        with stage.database.transaction() as connection:
            rows = PUBLISHED_IMAGES.read(connection, stage.month)
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


def _megabytes(sizes: Iterable[int]) -> float:
    return round(sum(sizes) / 1e6, 3)
