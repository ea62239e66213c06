"""The end of `fc-data run --only`: what became of each item that was named."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from rich.console import Console

from formulacode_dagster.models.errors import FormulaCodeError, ItemFailure
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.lookup import story_of

from .terminal import plain


def show_fates(console: Console, store: Database, month: Month, names: Sequence[str]) -> None:
    """Print a line for each of *names*: how it ended in *month*, or why it is not part of it."""
    for text in names:
        console.print(fate_of(store, month, ItemName.parse(text)), markup=False, highlight=False)


def fate_of(store: Database, month: Month, name: ItemName) -> str:
    """Return what became of *name* in *month*; of a pull request of another month, that month and the command."""
    with store.transaction() as connection:
        story = story_of(connection, name)
        repository = story_of(connection, ItemName.parse(name.repository)) if name.number else []
    here = [entry for entry in story if entry.month == month.key and entry.state is not ItemState.SKIPPED]
    elsewhere = [entry for entry in story if entry.month != month.key and entry.state is not ItemState.SKIPPED]
    if here:
        return f"{here[-1].item}: {_ended(here[-1])}. All of it: fc-data why {here[-1].item}"
    if elsewhere and name.number:
        return _merged_in(name, elsewhere[-1].month)
    tracking = [entry for entry in repository if (entry.month, entry.stage) == (month.key, Stage.REPOSITORIES)]
    if name.number and tracking and tracking[-1].state is not ItemState.DONE:
        return f"{name}: its repository is not tracked in {month}: {_ended(tracking[-1])}"
    if not name.number:
        return f"{name}: not among the repositories with asv benchmarks that were found for {month}"
    return _by_github(month, name, is_known=bool(tracking))


def _ended(entry: LedgerEntry) -> str:
    reason = f" ({entry.reason})" if entry.reason else ""
    detail = plain(entry.detail).splitlines()
    return f"{entry.state.value}{reason} at {entry.stage.value}{f': {detail[0]}' if detail else ''}"


def _merged_in(name: ItemName, month: str) -> str:
    return f"{name} was merged in {month}: fc-data run --month {month} --only {name}"


def _by_github(month: Month, name: ItemName, *, is_known: bool) -> str:
    """Ask the GitHub of the settings about a pull request that no month knows."""
    try:
        merged = Month.of(asyncio.run(_merged_at(name)))
    except ItemFailure as failure:
        return f"{name} is no merged pull request of {name.repository}: {failure}"
    except FormulaCodeError as error:
        return f"{name}: no data, and GitHub could not be asked: {error}"
    if merged.key != month.key:
        return _merged_in(name, merged.key)
    untracked = "" if is_known else f", and {name.repository} is not among the repositories with asv benchmarks"
    return f"{name} was merged in {month}, but is not among its pull requests{untracked}"


async def _merged_at(name: ItemName) -> datetime:
    from formulacode_dagster.library import GitHubClient

    async with GitHubClient() as client:
        found = await client.get_pr(name.repository, name.number or 0)
    if found.facts is None:
        raise ItemFailure(FailureKind.VANISHED, f"GitHub gave no facts about {name}")
    return found.facts.merged_at
