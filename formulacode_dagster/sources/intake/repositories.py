"""The stage `repositories`: find repositories, and those on the list; then decide which of them are tracked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from formulacode_dagster.models.intake import IntakeSource, SearchGap
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.metering import metered
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import REPOSITORIES, SEARCH_GAPS
from formulacode_dagster.operating.store.listed import listed as listed_repositories
from formulacode_dagster.operating.store.repositories import withdraw
from formulacode_dagster.sources.github.checks import searches_complete
from formulacode_dagster.sources.github.tracking import TrackingRules
from formulacode_dagster.sources.offline.identity import settle

from .tracked import DISCOVERY, cost_of, decide, needs_discovery, tracking_items

DECIDED_AT_ONCE = 500
"""Decisions cost nothing: this many go into one transaction."""


@dataclass(frozen=True)
class RepositoryIntake:
    """What one run of the stage did, and the repositories that the month knows after it."""

    discovered: StageSummary
    decided: StageSummary
    rows: tuple[Repository, ...]


async def take_in_repositories(
    run: StageRun, open_source: Callable[[], IntakeSource], rules: TrackingRules, *, offline: str = ""
) -> RepositoryIntake:
    """Discover where that is pending or a search stayed too short, and judge what is known by *rules*.

    *offline* is the state of an offline source.
    Raises the ItemFailure of a discovery that failed, and as `run_items`.
    """
    with run.database.transaction() as connection:
        listed = listed_repositories(connection)
        before = REPOSITORIES.read(connection, run.month)
        searched = searches_complete(SEARCH_GAPS.read(connection, run.month)).passed

    gaps: list[SearchGap] = []

    async def discover(_: WorkItem[None]) -> Outcome[tuple[Repository, ...]]:
        async with metered(run, open_source()) as source:
            wanted = tuple(line.full_name for line in listed.values())
            rows = await source.discover(Month.parse(run.month), wanted, gaps.append)
            short = f", {len(gaps)} searches stayed short" if gaps else ""
            return Outcome(rows, cost_of(source.usage()), f"{len(rows)} repositories found{short}")

    def keep(connection: Connection, discoveries: Sequence[tuple[Repository, ...]]) -> None:
        for rows in discoveries:
            REPOSITORIES.replace_month(connection, run.month, settle(connection, run.month, rows))
            SEARCH_GAPS.replace_month(connection, run.month, gaps)

    def drop(connection: Connection, rejected: Sequence[Repository]) -> None:
        withdraw(connection, run.month, rejected)

    discovery = WorkItem(DISCOVERY, fingerprint(Stage.REPOSITORIES, offline), None, always=True)
    again = [DISCOVERY] if not searched or needs_discovery(before, listed) else []
    discovered = await run_items(run, [discovery], discover, keep, prune=False, redo=again)
    discovered.require_done()
    with run.database.transaction() as connection:
        rows = REPOSITORIES.read(connection, run.month)
    items = tracking_items(rows, rules, listed)
    decided = await run_items(run, items, decide, drop, concurrency=DECIDED_AT_ONCE, besides=[DISCOVERY])
    return RepositoryIntake(discovered, decided, tuple(rows))
