"""`images`/`reproduces`: of each month some images are built again, from spec and locks alone. It blocks nothing."""

import dagster as dg

from formulacode_dagster.engines.protocol import Engine
from formulacode_dagster.images.reproducibility import CHECK, rebuild_stored, sample, verdict
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.reproduction import Reproduction
from formulacode_dagster.store.artifacts import IMAGES, REPRODUCTIONS
from formulacode_dagster.store.checks import record_verdict
from formulacode_dagster.store.database import Database
from formulacode_dagster.store.pull_requests import done_items
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .checks import check_result
from .partitions import MONTHS, month_of


@dg.asset_check(
    asset=Stage.IMAGES.value,
    name=CHECK,
    blocking=False,
    description="A sample of the month's images, built again from spec and locks alone, comes out the same.",
    partitions_def=MONTHS,
    pool="build",
)
def reproduces(
    context: dg.AssetCheckExecutionContext,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
) -> dg.AssetCheckResult:
    """Build the sampled images again, each within the time limit of a build, and name what differs."""
    month = month_of(context).key
    made: list[Reproduction] = []
    failures: dict[str, str] = {}
    try:
        database = postgres.database()
        engine, _ = containers.chosen()
        for item, image in _sampled(database, month, engine).items():
            try:
                known = _known(database, image)
                cache = mirrors.cache()
                made.append(
                    known or rebuild_stored(database, engine, cache, image, item=item, run_id=context.run.run_id)
                )
            except FormulaCodeError as error:
                # a daemon or an index that is gone says nothing about the image, and is no pass either
                failures[item] = str(error)
        judged = verdict(month, made, failures)
        with database.transaction() as connection:
            record_verdict(connection, judged, context.run.run_id)
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    return check_result(judged)


def _sampled(database: Database, month: str, engine: Engine) -> dict[str, BuiltImage]:
    """The images to build again, by item: of those that the engine at work has built."""
    with database.transaction() as connection:
        items = done_items(connection, month, Stage.IMAGES)
        images = {items[key]: image for key, image in IMAGES.read_keys(connection, month, items).items()}
    ours = [item for item, image in images.items() if image.engine is engine.name]
    return {item: images[item] for item in sample(month, ours)}


def _known(database: Database, image: BuiltImage) -> Reproduction | None:
    """What building the very image again has shown already."""
    key = (image.repository_id, image.number)
    with database.transaction() as connection:
        found = REPRODUCTIONS.read_keys(connection, image.month, [key]).get(key)
    return found if found is not None and found.digest == image.digest else None
