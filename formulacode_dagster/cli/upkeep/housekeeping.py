"""`fc-data housekeeping`: shows and removes unneeded data of engines, databases and mirrors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from formulacode_dagster.cli.console import console, table_of


def housekeeping(
    remove: Annotated[bool, typer.Option("--remove", help="Do it.", show_default="only list removals")] = False,
) -> None:
    """Remove leftovers of dead runs, images and build cache over budget, old attempts and runs; repack mirrors."""
    from formulacode_dagster.building.housekeeping.attempts import prune_attempts
    from formulacode_dagster.building.housekeeping.cleanup import clean_up_all
    from formulacode_dagster.building.housekeeping.report import Report
    from formulacode_dagster.building.housekeeping.shared_stages import close_deserted_stages
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.orchestration.ended_runs import runs_over
    from formulacode_dagster.orchestration.run_history import prune_runs
    from formulacode_dagster.orchestration.runs import dagster_instance
    from formulacode_dagster.sources.git.repacking import repack_mirrors
    from resources.containers import ContainersResource
    from resources.settings import read_settings

    containers = ContainersResource()
    now, settings = datetime.now(tz=UTC), read_settings()
    with dagster_instance() as instance, database() as store:
        pruned = prune_attempts(store, settings.attempts_days, now=now, dry_run=not remove)
        deserted = close_deserted_stages(store, dry_run=not remove)
        stores = containers.image_stores(runs_over(instance, store, now=now))
        cleaned = clean_up_all(store, stores, containers.budgets, dry_run=not remove)
        runs = prune_runs(instance, settings.runs_days, now=now, dry_run=not remove)
    repacked = repack_mirrors(settings.mirrors_root, dry_run=not remove)
    done: list[Report] = [pruned, runs, repacked, *cleaned]
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
        console.print("nothing was removed; use --remove to apply", highlight=False)
