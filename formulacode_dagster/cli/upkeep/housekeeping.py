"""`fc-data housekeeping`: what could go from engines and database, and away with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from formulacode_dagster.cli.console import console, table_of


def housekeeping(
    remove: Annotated[bool, typer.Option("--remove", help="Do it.", show_default="only say what would go")] = False,
) -> None:
    """Remove what dead runs left, images and build cache over their budgets, attempts and logs of old."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.housekeeping.attempts import prune_attempts
    from formulacode_dagster.housekeeping.cleanup import clean_up_all
    from formulacode_dagster.housekeeping.report import Report
    from formulacode_dagster.housekeeping.shared_stages import close_deserted_stages
    from resources.containers import ContainersResource
    from resources.settings import read_settings

    containers = ContainersResource()
    with database() as store:
        days = read_settings().attempts_days
        pruned = prune_attempts(store, days, now=datetime.now(tz=UTC), dry_run=not remove)
        deserted = close_deserted_stages(store, dry_run=not remove)
        cleaned = clean_up_all(store, containers.image_stores(), containers.budgets, dry_run=not remove)
    done: list[Report] = [pruned, *cleaned]
    table = table_of("what", "why", "MB", numbers="MB")
    for stage in deserted:
        table.add_row(f"{stage.stage} of {stage.month}, as shared", "no run leads it", "")
    for report in done:
        for name, why, size in report.gone():
            table.add_row(name, why, f"{size / 1e6:.1f}")
    if table.row_count:
        console.print(table)
    for report in done:
        console.print(report.summary, markup=False, highlight=False)
    if not remove and table.row_count:
        console.print("nothing was removed; --remove does it", highlight=False)
