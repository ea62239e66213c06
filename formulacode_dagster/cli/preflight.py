"""`fc-data preflight`: whether every outside system answers, and with which rights."""

from __future__ import annotations

from typing import Annotated

import typer

from formulacode_dagster.models.month import Month

from .console import console

MonthOption = Annotated[
    str | None,
    typer.Option("--month", help="Month, YYYY-MM, to plan as well, as `fc-data plan` does.", show_default="none"),
]


def preflight(month: MonthOption = None) -> None:
    """Check that every outside system answers, and with which rights; status 1 when one is broken."""
    from resources.probes import Health

    from .funnel import show_plan
    from .operate import check_systems, database, read_forecast
    from .terminal import show_findings

    findings = check_systems()
    show_findings(console, findings)
    if month is not None:
        with database() as store:
            show_plan(read_forecast(store, Month.parse(month)))
    raise typer.Exit(1 if any(finding.health is Health.BROKEN for finding in findings) else 0)
