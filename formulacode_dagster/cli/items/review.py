"""`fc-data review`: what a person thinks of a task."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.cli.console import console, table_of
from formulacode_dagster.models.agent_run import Review, ReviewVerdict
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName

if TYPE_CHECKING:
    from rich.console import Console
    from sqlalchemy import Connection

    from formulacode_dagster.models.pull_request import MergedPullRequest


def review(
    item: Annotated[str, typer.Argument(help="owner/repo#123.")],
    verdict: Annotated[ReviewVerdict, typer.Option(help="Your opinion of the task.")],
    by: Annotated[str, typer.Option(help="Your name: the task's page shows it.")],
    note: Annotated[str, typer.Option(help="What you saw, and why.")],
) -> None:
    """Store a person's review of a task, next to earlier ones; `fc-data why` and the site show it."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.operating.store.acceptances import add_review, reviews_of

    if not (by.strip() and note.strip()):
        raise ConfigurationError("a review needs a name and a note", remedy="Give --by and --note")
    with database() as store, store.transaction() as connection:
        facts = _facts(connection, ItemName.parse(item))
        if facts is None:
            raise ConfigurationError(f"{item} is not a known pull request", remedy="Write it as owner/repo#123")
        add_review(
            connection,
            Review(
                month=facts.month,
                task_id=facts.task_id,
                reviewed_at=datetime.now(UTC),
                reviewed_by=by.strip(),
                verdict=verdict,
                note=note.strip(),
                release=_release_of(connection, facts),
            ),
        )
        count = len(reviews_of(connection, facts.month)[facts.task_id])
    console.print(f"{facts.task_id} is {verdict} by {by.strip()}; reviews: {count}", markup=False, highlight=False)


def show_reviews(console: Console, connection: Connection, item: ItemName) -> None:
    """Print a line for each review of *item*, oldest first; nothing without any."""
    from rich.markup import escape

    from formulacode_dagster.cli.terminal import plain
    from formulacode_dagster.operating.store.acceptances import reviews_of

    facts = _facts(connection, item)
    reviews = reviews_of(connection, facts.month).get(facts.task_id, []) if facts else []
    if not reviews:
        return
    table = table_of("when", "by", "verdict", "note", "release", title="Reviews of it")
    for each in reviews:
        day = f"{each.reviewed_at:%Y-%m-%d}"
        table.add_row(day, escape(plain(each.reviewed_by)), each.verdict, escape(plain(each.note)), each.release)
    console.print(table)


def _facts(connection: Connection, name: ItemName) -> MergedPullRequest | None:
    from formulacode_dagster.operating.store.lookup import find_pull_request

    stored = find_pull_request(connection, name.repository, name.number) if name.number else None
    return stored.facts if stored else None


def _release_of(connection: Connection, facts: MergedPullRequest) -> str:
    """Tag of the newest release at the configured destination that has the task; empty if none has."""
    from formulacode_dagster.operating.store.artifacts import RELEASES
    from resources.destination import open_destination
    from resources.settings import read_settings

    here = open_destination(read_settings()).name
    releases = [
        row
        for row in RELEASES.read(connection, facts.month)
        if row.destination == here and facts.task_id in row.task_ids
    ]
    return max(releases, key=lambda row: row.number).tag if releases else ""
