"""`fc-data dashboards candidates`: commits that breakpoints name enter the months in which they landed."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated

import typer
from rich.markup import escape

from formulacode_dagster.cli.console import console, table_of
from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.operating.store.series.source import Source


def candidates(
    name: Annotated[str, typer.Argument(help="Name of a dashboard whose breakpoints are kept.")],
    source: Annotated[Source, typer.Option(help="Which of its series.")] = Source.PUBLISHED,
    method: Annotated[Method, typer.Option(help="How the steps were found.")] = Method.SEEDED,
    widest: Annotated[int, typer.Option(min=1, help="Most commits between the two that were measured.")] = 1,
) -> None:
    """Make commits at which benchmarks got faster candidates of their months, in the place of those it named before."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.measuring.breakpoints.candidates import enter_candidates_of
    from formulacode_dagster.models.identity import item_key
    from resources.mirrors import MirrorsResource

    with database() as store, console.status("reading the repository"):
        chosen = enter_candidates_of(
            store, MirrorsResource().cache(), name, source=source, method=method, widest=widest
        )
    months: dict[str, list[str]] = defaultdict(list)
    for row in chosen.candidates:
        months[row.month].append(f"{item_key(row.repository, row.number)} {row.title}")
    table = table_of("month", "candidates")
    for month, items in sorted(months.items()):
        table.add_row(month, escape("\n".join(items)))
    console.print(table)
    left_out = ", ".join(f"{count} {why.replace('_', ' ')}" for why, count in chosen.left_out.items()) or "none"
    console.print(f"{len(chosen.candidates)} candidates; steps left out: {left_out}", highlight=False)
    if months:
        console.print("They enter a month when it is run: fc-data run --month MONTH", highlight=False)
