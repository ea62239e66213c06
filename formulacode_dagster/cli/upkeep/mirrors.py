"""`fc-data mirrors`: the mirrors on this machine, their size, and their removal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from formulacode_dagster.cli.console import console, table_of
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.identity import ItemName

if TYPE_CHECKING:
    from formulacode_dagster.sources.git.eviction import KeptMirror


def mirrors(
    evict: Annotated[
        list[str] | None,
        typer.Option(help="owner/repo, whose mirror is removed; may be repeated.", show_default="list them"),
    ] = None,
) -> None:
    """List the mirrors on this machine: size, last use, state; or remove some."""
    from formulacode_dagster.sources.git import eviction
    from resources.mirrors import MirrorsResource
    from resources.settings import make_home

    make_home()
    resource = MirrorsResource()
    root = resource.settings.mirrors_root
    try:
        for repository in evict or ():
            gone = eviction.evict(root, ItemName.parse(repository).repository)
            console.print(f"evicted {gone}", markup=False, highlight=False)
        if not evict:
            _show(eviction.kept_mirrors(root), resource.budget)
    except OSError as error:
        raise OutsideSystemError(
            "disk", f"cannot read or write {root}", why=str(error), remedy="Look at FC_MIRRORS_DIR"
        ) from error


def _show(mirrors: Sequence[KeptMirror], budget: int | None) -> None:
    from formulacode_dagster.sources.git.eviction import MirrorState

    colours = {MirrorState.READY: "green", MirrorState.IN_USE: "cyan", MirrorState.BROKEN: "red"}
    if mirrors:
        table = table_of("mirror", "MB", "last use (UTC)", "state", numbers="MB")
        for mirror in mirrors:
            state = f"{mirror.state.value}: {mirror.why}" if mirror.why else mirror.state.value
            size, used = f"{mirror.bytes / 1e6:.1f}", f"{mirror.last_used:%Y-%m-%d %H:%M}"
            table.add_row(mirror.repository, size, used, f"[{colours[mirror.state]}]{escape(state)}[/]")
        console.print(table)
    total = sum(mirror.bytes for mirror in mirrors) / 1e9
    limit = "no limit" if budget is None else f"of {budget / 1e9:g} GB"
    console.print(f"{len(mirrors)} mirrors, {total:.2f} GB {limit} (FC_MIRRORS_GB)", highlight=False)
