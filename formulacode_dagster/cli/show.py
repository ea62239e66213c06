"""`fc-data show`: the results of a stage for one item."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import ItemSection
from formulacode_dagster.models.problem import Variant

from .console import console, one_of


def _section(text: str) -> ItemSection:
    # no choice of typer's: help would break the list of them inside words
    if text not in list(ItemSection):
        raise typer.BadParameter(f"{text!r} is unknown. {one_of(ItemSection)}")
    return ItemSection(text)


def show(
    item: Annotated[str, typer.Argument(help="owner/repo#123.")],
    part: Annotated[str, typer.Argument(help=one_of(ItemSection))],
    variant: Annotated[
        Variant, typer.Option(metavar="VARIANT", help=f"Which text of the statement. {one_of(Variant)}")
    ] = Variant.FINAL,
) -> None:
    """Print the results of a stage for one pull request, a statement next to its writer's input."""
    from formulacode_dagster.library.leftovers import part_of

    from .operate import database
    from .terminal import plain

    with database() as store, store.transaction() as connection:
        text = part_of(connection, ItemName.parse(item), _section(part), variant)
    if sys.stdout.isatty():
        console.print(plain(text), markup=False, highlight=False)
        return
    # byte for byte: a patch may be in any encoding, and is to be applied
    sys.stdout.buffer.write((text if text.endswith("\n") else f"{text}\n").encode("utf-8", "surrogateescape"))
    sys.stdout.flush()
