"""`fc-data accept`: a month as it is, although too much of it failed."""

from __future__ import annotations

from typing import Annotated

import typer

from formulacode_dagster.models.items import Stage

from .console import console, one_of


def accept(
    month: Annotated[str, typer.Option("--month", help="Month, YYYY-MM.")],
    stage: Annotated[
        Stage, typer.Option(metavar="STAGE", help=f"The stage whose failures are accepted. {one_of(Stage)}")
    ],
    by: Annotated[str, typer.Option(help="Your name: the report and the dataset's card print it.")],
    reason: Annotated[str, typer.Option(help="Why; printed with it.")],
) -> None:
    """Accept the result of a stage for a month as it is, although more items failed than its budget allows."""
    from formulacode_dagster.operating.runner.failures import accept_failures
    from resources.settings import read_settings

    from .operate import database, months_of

    (wanted,) = months_of(month, None, None)
    with database() as store:
        budget = read_settings().failure_budget_of(stage)
        verdict = accept_failures(store, wanted.key, stage, budget, by=by, reason=reason, run_id="fc-data accept")
    console.print(f"{stage} of {wanted}: {verdict.summary}", markup=False, highlight=False)
    console.print(f"Go on with: fc-data run --month {wanted}", markup=False, highlight=False)
