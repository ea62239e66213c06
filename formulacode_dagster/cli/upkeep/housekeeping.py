"""`fc-data housekeeping`: what could go from the disks of the engines, and away with it."""

from __future__ import annotations

from typing import Annotated

import typer

from formulacode_dagster.cli.console import console, table_of


def housekeeping(
    remove: Annotated[bool, typer.Option("--remove", help="Do it.", show_default="only say what would go")] = False,
) -> None:
    """Remove what dead runs left, images over FC_IMAGES_GB, and build cache over FC_BUILD_CACHE_GB."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.housekeeping.cleanup import clean_up_all
    from formulacode_dagster.housekeeping.shared_stages import close_deserted_stages
    from resources.containers import ContainersResource

    containers = ContainersResource()
    with database() as store:
        deserted = close_deserted_stages(store, dry_run=not remove)
        done = clean_up_all(store, containers.image_stores(), containers.budgets, dry_run=not remove)
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
