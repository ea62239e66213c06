"""`fc-data repositories`: the allow and deny list of repositories, kept in the database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.intake import ListedRepository, ListVerdict
from formulacode_dagster.models.month import Month

from .console import console

Name = Annotated[str, typer.Argument(help="owner/repo, in any case.")]
_FROM_NOW_ON = "A month follows when its `repositories` is materialized again."
Reason = Annotated[str, typer.Option(help="Reason; the ledger shows it for every month.")]


app = typer.Typer(help="Override the rules for single repositories: always tracked, or never.", no_args_is_help=True)


@app.command()
def allow(repository: Name, reason: Reason) -> None:
    """Track a repository, with any number of stars and in any language, fork or archive."""
    _put(repository, ListVerdict.ALLOW, reason)
    console.print(f"{repository} is allowed. {_FROM_NOW_ON}", highlight=False)


@app.command()
def deny(repository: Name, reason: Reason) -> None:
    """Never track a repository; a month forgets its pull requests as `repositories` is materialized again."""
    _put(repository, ListVerdict.DENY, reason)
    console.print(f"{repository} is denied. {_FROM_NOW_ON}", highlight=False)


@app.command()
def forget(repository: Name) -> None:
    """Take a repository off the list: the rules decide about it again."""
    from formulacode_dagster.operating.store.listed import remove_listed

    from .operate import database

    with database() as store, store.transaction() as connection:
        if not remove_listed(connection, repository):
            raise ConfigurationError(f"{repository} is not on the list", remedy="See who is: fc-data repositories show")
    console.print(f"{repository} is off the list. {_FROM_NOW_ON}", highlight=False)


@app.command()
def show(
    month: Annotated[
        str | None, typer.Option("--month", help="Show that month's outcome too, YYYY-MM.", show_default="no month")
    ] = None,
) -> None:
    """Show the list; with a month, how each repository on it ended, and why others are not tracked."""
    from formulacode_dagster.models.items import Stage
    from formulacode_dagster.operating.store import ledger
    from formulacode_dagster.operating.store.artifacts import REPOSITORIES
    from formulacode_dagster.operating.store.listed import listed
    from formulacode_dagster.sources.intake.repositories.tracked import exclusions, standing_of

    from .operate import database
    from .terminal import show_exclusions, show_listed

    key = Month.parse(month).key if month else ""
    with database() as store, store.transaction() as connection:
        lines = listed(connection)
        rows = REPOSITORIES.read(connection, key) if key else []
        entries = ledger.entries_of(connection, key, Stage.REPOSITORIES) if key else []
    show_listed(console, [(line, standing_of(line, rows, entries)) for line in lines.values()], key)
    if key:
        show_exclusions(console, exclusions(entries, rows), key)


def _put(repository: str, verdict: ListVerdict, reason: str) -> None:
    from formulacode_dagster.operating.store.listed import put_listed

    from .operate import database

    if not reason.strip():
        raise ConfigurationError("the reason is empty", remedy="Give the reason for readers of the ledger")
    line = ListedRepository(
        full_name=repository, verdict=verdict, reason=reason.strip(), listed_at=datetime.now(tz=UTC)
    )
    with database() as store, store.transaction() as connection:
        put_listed(connection, line)
