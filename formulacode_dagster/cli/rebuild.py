"""`fc-data rebuild`: builds an image again only from its spec and locks, and shows the differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName

from .console import console, table_of

if TYPE_CHECKING:
    from formulacode_dagster.models.image import BuiltImage
    from formulacode_dagster.models.reproduction import Reproduction
    from formulacode_dagster.operating.store.database import Database


def rebuild(
    item: Annotated[str, typer.Argument(help="owner/repo#123, or a published image: host/name@sha256:…")],
) -> None:
    """Build an image again only from spec and locks, and compare every installed file; status 1 if one differs.

    Of a published image, the attached provenance is all that is read: whoever has no database can rebuild it.
    """
    from formulacode_dagster.building.images.reproducibility import rebuild_stored
    from resources.containers import ContainersResource
    from resources.mirrors import MirrorsResource

    from .operate import database

    if "#" not in item and (":" in item or "@" in item):
        _end(_rebuild_published(item))
    name = ItemName.parse(item)
    with database() as store:
        image, told = _image_of(store, name)
        containers = ContainersResource()
        engine, why = containers.engine_for_repositories([name.repository], [image.engine])
        console.print(why, highlight=False)
        with console.status(f"building {image.tag} again") as status:
            machine = containers.machine(store, engine, status.update)
            made = rebuild_stored(machine, engine, MirrorsResource().cache(), image, item=told)
    _end(made)


def _end(made: Reproduction) -> NoReturn:
    _show(made)
    raise typer.Exit(0 if made.is_equal else 1)


def _rebuild_published(reference: str) -> Reproduction:
    from formulacode_dagster.building.images.rebuild import rebuild
    from resources.containers import ContainersResource
    from resources.mirrors import MirrorsResource
    from resources.registry import RegistryResource

    image = RegistryResource().puller().attested_image(reference)
    name = f"{image.spec.repository}#{image.number}"
    engine, why = ContainersResource().engine_for_repositories([image.spec.repository], [image.engine])
    console.print(why, highlight=False)
    with console.status(f"building {image.tag} again"):
        # without the listings: the statement has only the hashes
        return rebuild(engine, image, cache=MirrorsResource().cache(), kept=lambda _: None, item=name)


def _image_of(store: Database, name: ItemName) -> tuple[BuiltImage, str]:
    from formulacode_dagster.operating.store.artifacts import IMAGES
    from formulacode_dagster.operating.store.lookup import find_pull_request

    with store.transaction() as connection:
        stored = find_pull_request(connection, name.repository, name.number) if name.number else None
        if stored is None:
            raise ConfigurationError(f"{name} is not a known pull request", remedy="Write it as owner/repo#123")
        key = (stored.facts.repository_id, stored.facts.number)
        images = IMAGES.read_keys(connection, stored.facts.month, [key])
    if key not in images:
        raise ConfigurationError(
            f"{name} has no image", remedy=f"`fc-data why {name}` shows why; or run its month first"
        )
    return images[key], stored.facts.item


def _show(made: Reproduction) -> None:
    from rich.markup import escape

    if made.differences:
        table = table_of("difference", "of", "what")
        for difference in made.differences:
            table.add_row(difference.kind.value, escape(difference.name), escape(difference.detail))
        console.print(table)
    verdict = "[green]equal[/]" if made.is_equal else "[red]different[/]"
    console.print(
        f"{made.item}: {verdict} to {made.against}: {made.distributions} distributions, {made.files} files; "
        f"built again in {made.seconds:.0f} s",
        highlight=False,
    )
