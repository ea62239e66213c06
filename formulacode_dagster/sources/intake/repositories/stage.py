"""The stage `repositories`: find repositories and those on the list, then decide which of them are tracked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from formulacode_dagster.models.intake import IntakeSource, SearchGap
from formulacode_dagster.models.items import ItemKind, Stage
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
from formulacode_dagster.sources.github.origin import record_same_github
from formulacode_dagster.sources.github.tracking import TrackingRules
from formulacode_dagster.sources.offline.identity import settle

from .tracked import DISCOVERY, cost_of, decide, needs_discovery, tracked_before, tracking_items

DECISION_CONCURRENCY = 500
"""Decisions cost nothing: this many are saved in one transaction."""


@dataclass(frozen=True)
class RepositoryTools:
    """Source of repositories, and the tracking rules."""

    source: IntakeSource
    rules: TrackingRules
    offline: str = ""
    """State of an offline source; empty for GitHub."""
    github: str = ""
    """Name of the GitHub, recorded as that of all months; empty offline."""
    candidates: Mapping[str, str] = field(default_factory=dict)
    """Repositories from other lists, which the source looks up besides: paths of their configurations by name."""
    as_before: bool = False
    """Look up what the newest earlier month tracked, too."""


async def run(stage: StageRun, tools: RepositoryTools) -> StageSummary:
    """Discover repositories if that is pending or a search was incomplete, then apply the rules to all known ones.

    Raises the ItemFailure of a failed discovery, and as `run_items`.
    """
    with stage.database.transaction() as connection:
        if tools.github and not stage.options.dry_run:
            record_same_github(connection, tools.github)
        listed = listed_repositories(connection)
        before = REPOSITORIES.read(connection, stage.month)
        earlier = tracked_before(connection, stage.month) if tools.as_before else ()
        searched = searches_complete(SEARCH_GAPS.read(connection, stage.month)).passed

    gaps: list[SearchGap] = []

    async def discover(_: WorkItem[None]) -> Outcome[tuple[Repository, ...]]:
        async with metered(stage, tools.source) as source:
            wanted = (*(line.full_name for line in listed.values()), *earlier)
            rows = await source.discover(Month.parse(stage.month), wanted, gaps.append)
            short = f", {len(gaps)} searches stayed short" if gaps else ""
            return Outcome(rows, cost_of(source.usage()), f"{len(rows)} repositories found{short}")

    def keep(connection: Connection, discoveries: Sequence[tuple[Repository, ...]]) -> None:
        for rows in discoveries:
            REPOSITORIES.replace_month(connection, stage.month, settle(connection, stage.month, rows))
            SEARCH_GAPS.replace_month(connection, stage.month, gaps)
        if tools.github:
            record_same_github(connection, tools.github)

    def drop(connection: Connection, rejected: Sequence[Repository]) -> None:
        withdraw(connection, stage.month, rejected)

    others = (sorted(tools.candidates.items()), earlier)
    inputs = fingerprint(Stage.REPOSITORIES, tools.offline, *(others if any(others) else ()))
    discovery = WorkItem(DISCOVERY, inputs, None)
    again = [DISCOVERY] if not searched or needs_discovery(before, listed, (*tools.candidates, *earlier)) else []
    discovered = await run_items(stage, ItemKind.STEP, [discovery], discover, keep, redo=again)
    discovered.require_done()
    with stage.database.transaction() as connection:
        rows = REPOSITORIES.read(connection, stage.month)
    items = tracking_items(rows, tools.rules, listed)
    decided = await run_items(stage, ItemKind.REPOSITORY, items, decide, drop, concurrency=DECISION_CONCURRENCY)
    return decided.after(discovered)
