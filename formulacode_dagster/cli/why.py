"""`fc-data why`: an item's whole story."""

from __future__ import annotations

from typing import Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import ItemSection, Stage

from .console import console, one_of


def why(
    item: Annotated[str, typer.Argument(help="owner/repo#123, or owner/repo.")],
    log: Annotated[
        Stage | None,
        typer.Option(
            metavar="STAGE",
            help=f"Print the whole newest log of this stage too. {one_of(Stage)}",
            show_default="no log",
        ),
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(help="Print the whole log of this attempt at the image too.", show_default="no log")
    ] = None,
) -> None:
    """Show an item's whole history: every stage, state, reason, error, cost, attempt at its image and measurement."""
    from formulacode_dagster.operating.store.blobs import get_log
    from formulacode_dagster.operating.store.lookup import story_of

    from .attempts import show_attempts, show_judges, show_log, show_measurements
    from .items.review import show_reviews
    from .operate import database
    from .terminal import plain, show_story

    asked = ItemName.parse(item)
    with database() as store, store.transaction() as connection:
        story = story_of(connection, asked)
        if not story:
            raise ConfigurationError(
                f"no data on {asked}", remedy="Run its month first; `fc-data funnel --month` lists examples"
            )
        name = ItemName.parse(story[-1].item)
        show_story(console, str(name), story)
        show_judges(console, connection, name)
        show_attempts(console, connection, name)
        show_measurements(console, connection, name)
        show_reviews(console, connection, name)
        if name.number is not None:
            console.print(
                f"Results of its stages: fc-data show {name} {'|'.join(ItemSection)}",
                highlight=False,
                markup=False,
            )
        if attempt is not None:
            show_log(console, connection, name, attempt)
        if log is not None:
            text = get_log(connection, stage=log, month=story[-1].month, item=str(name))
            console.print(plain(text) or f"no log of {log} was kept", markup=False, highlight=False)
