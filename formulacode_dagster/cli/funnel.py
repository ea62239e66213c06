"""`fc-data funnel`: how many items of a month came in, how many went out, and why the others did not."""

from __future__ import annotations

from typing import Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month

from .console import console


def funnel(month: Annotated[str, typer.Option("--month", help="Month, YYYY-MM.")]) -> None:
    """Show how many items came in, how many went out, and why the others did not."""
    from .operate import database, read_funnel
    from .terminal import show_funnel

    with database() as store:
        figures = read_funnel(store, Month.parse(month))
    if figures.is_empty:
        raise ConfigurationError(f"no data on {month}", remedy=f"Run it first: fc-data run --month {month}")
    show_funnel(console, figures)
