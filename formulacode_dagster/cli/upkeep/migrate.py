"""`fc-data migrate`: the database, brought up to date."""

from __future__ import annotations

from typing import Annotated

import typer

from formulacode_dagster.cli.console import console

Check = Annotated[
    bool,
    typer.Option(
        "--check", help="List missing migrations, change nothing; status 1 if there are any.", show_default="no"
    ),
]


def migrate(check: Check = False) -> None:
    """Bring the database up to date."""
    from formulacode_dagster.cli.operate import database

    with database(migrated=False) as store:
        names = store.pending_migrations() if check else store.migrate()
        done = "missing" if check else "applied"
        console.print(f"{done} {', '.join(names)}" if names else f"{store.where} is up to date", highlight=False)
    raise typer.Exit(1 if check and names else 0)
