"""`fc-data funnel` and `plan`: how many items of a month went how far, and how many are expected to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month

from .console import console, table_of

if TYPE_CHECKING:
    from formulacode_dagster.operating.store.database import Database
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
    from .operate import database, read_funnel, read_plan
    from .terminal import show_funnel

    with database() as store:
        parsed = Month.parse(month)
        figures = read_funnel(store, parsed)
        planned = read_plan(store, parsed)
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
    show_plan(expected)


def ask_about_budgets(store: Database, months: Sequence[Month], *, confirmed: bool) -> None:
    """Ask before *months* that are expected to pass a model's budget; only warn if *confirmed* or without a terminal.

    Raises typer.Abort if the answer is no.
    """
    from .operate import read_forecast

    warnings: list[str] = []
    for month in months:
        # without an earlier month nothing is expected
        with suppress(ConfigurationError):
            warnings += budget_warnings(read_forecast(store, month))
    for warning in warnings:
        console.print(warning, markup=False, highlight=False)
    if warnings and not confirmed and sys.stdin.isatty():
        typer.confirm("Run all the same?", abort=True)


def budget_warnings(expected: Forecast) -> list[str]:
    """Return a sentence for each of the models' monthly budgets that will not suffice."""
    from formulacode_dagster.operating.monitoring.operations import amount
    from resources.settings import read_settings

    settings = read_settings()
    return [
        f"{expected.month} is expected to need {amount(over.expected.expected, over.unit)} "
        f"({_range(over.expected)}), and {over.setting} is {amount(over.limit, over.unit)}: what it does not cover "
        "stays undone until you raise it"
        for over in expected.overruns(settings.llm_tokens_per_month, settings.llm_dollars_per_month)
    ]


def show_plan(expected: Forecast) -> None:
    """Print what a month will come to, and which budgets will not suffice."""
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
    for warning in budget_warnings(expected):
        console.print(warning, style="yellow", markup=False, highlight=False)


def _range(shown: ExpectedRange, size: float = 1.0) -> str:
    return f"{_number(shown.low / size)} to {_number(shown.high / size)}"


def _number(value: float) -> str:
    """Return *value* with two digits at least."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
