"""`fc-data funnel` and `plan`: how many items of a month went how far, and how many are expected to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month

from .console import console, table_of

if TYPE_CHECKING:
    from formulacode_dagster.releasing.reporting.forecast import ExpectedRange, Forecast

MonthOption = Annotated[str, typer.Option("--month", help="Month, YYYY-MM.")]
HOUR = 3600.0
UNITS = {
    "seconds": ("hours of work", HOUR),
    "api_points": ("API points", 1.0),
    "api_requests": ("API requests", 1.0),
    "model_calls": ("model calls", 1.0),
    "tokens_in": ("tokens asked", 1.0),
    "tokens_out": ("tokens answered", 1.0),
    "dollars": ("dollars", 1.0),
    "bytes": ("gigabytes", 1e9),
}
"""Fields of `Cost` with their names and sizes."""


def funnel(month: MonthOption) -> None:
    """Show how many items came in, how many went out, and why the others did not."""
    from .operate import database, read_forecast, read_funnel
    from .terminal import show_funnel

    with database() as store:
        parsed = Month.parse(month)
        figures = read_funnel(store, parsed)
        try:
            planned = read_forecast(store, parsed, as_planned=True)
        except ConfigurationError:
            # the first month has no plan
            planned = None
    if figures.is_empty:
        raise ConfigurationError(f"no data on {month}", remedy=f"Run it first: fc-data run --month {month}")
    show_funnel(console, figures, planned)


def plan(
    month: MonthOption,
    pull_requests: Annotated[
        int | None,
        typer.Option(
            "--pull-requests",
            min=1,
            help="How many were merged.",
            show_default="those taken in, else as many as in earlier months",
        ),
    ] = None,
) -> None:
    """Show what a month will come to and cost, by up to six months before it; asks nobody.

    What the month has done already is counted. Stages that no earlier month has finished are left out.
    """
    from .operate import database, read_forecast

    with database() as store:
        expected = read_forecast(store, Month.parse(month), pull_requests)
    _show(expected)


def _show(expected: Forecast) -> None:
    table = table_of("step", "expected", "95 %", title=f"Expected of {expected.month}", numbers="expected")
    for step in expected.steps:
        table.add_row(
            step.title, f"{step.count.expected:,.0f}", "counted" if step.count.is_known else _range(step.count)
        )
    console.print(table)
    costs = table_of("cost", "expected", "range", "most of it", title="Cost", numbers="expected")
    for unit, (name, size) in UNITS.items():
        total = expected.total(unit)
        if total.expected:
            most = max(expected.costs, key=lambda cost: cost.amounts[unit].expected if unit in cost.amounts else 0)
            costs.add_row(name, _number(total.expected / size), _range(total, size), most.stage.value)
    console.print(costs)
    console.print(f"By {', '.join(expected.months)}.", highlight=False)


def _range(shown: ExpectedRange, size: float = 1.0) -> str:
    return f"{_number(shown.low / size)} to {_number(shown.high / size)}"


def _number(value: float) -> str:
    """Return *value* with two digits at least."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
