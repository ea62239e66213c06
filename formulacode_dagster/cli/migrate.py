"""`fc-data migrate`: the database, brought up to date."""

from __future__ import annotations

from .console import console


def migrate() -> None:
    """Bring the database up to date."""
    from .operate import database

    with database(migrated=False) as store:
        applied = store.migrate()
        console.print(f"applied {', '.join(applied)}" if applied else f"{store.where} is up to date", highlight=False)
