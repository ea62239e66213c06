"""`images`/`reproduces`: some images of each month are built again, only from spec and locks."""

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.images.reproducibility import rebuild_stored, sample, verdict
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.reproduction import Reproduction
from formulacode_dagster.operating.store.artifacts import IMAGES, REPRODUCTIONS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import done_items
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource

from .checks import JudgedMonth, month_check


@month_check(blocking=False, pool="build")
def reproduces(month: JudgedMonth, mirrors: MirrorsResource, containers: ContainersResource) -> CheckFinding:
    """A sample of the month's images, built again only from spec and locks, comes out the same."""
    made: list[Reproduction] = []
    failures: dict[str, str] = {}
    engine, _ = containers.engine_for(month.database, month.key)
    machine = containers.machine(month.database, engine)
    for item, image in _sampled(month, engine).items():
        try:
            made.append(
                _known(month.database, image) or rebuild_stored(machine, engine, mirrors.cache(), image, item=item)
            )
        except FormulaCodeError as error:
            # a daemon or an index that is gone says nothing about the image, and is no pass either
            failures[item] = str(error)
    return verdict(made, failures)


def _sampled(month: JudgedMonth, engine: Engine) -> dict[str, BuiltImage]:
    """The images to build again, by item: of those that the engine at work has built."""
    with month.database.transaction() as connection:
        items = done_items(connection, month.key, Stage.IMAGES)
        images = {items[key]: image for key, image in IMAGES.read_keys(connection, month.key, items).items()}
    ours = [item for item, image in images.items() if image.engine is engine.name]
    return {item: images[item] for item in sample(month.key, ours)}


def _known(database: Database, image: BuiltImage) -> Reproduction | None:
    """Results of earlier rebuilds of exactly this image."""
    key = (image.repository_id, image.number)
    with database.transaction() as connection:
        stored = REPRODUCTIONS.read_keys(connection, image.month, [key]).get(key)
    return stored if stored is not None and stored.digest == image.digest else None
