"""Repositories of a month as items: each is tracked, or has a reason why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.intake import ApiUsage, ListedRepository
from formulacode_dagster.models.items import Cost, ItemKind, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.work import Outcome, WorkItem
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.sources.github.tracking import TrackingRules, entry_for, judge, not_among

DISCOVERY = "discovery"
"""The item that finds all others."""
EXAMPLES = 5


@dataclass(frozen=True)
class RepositoryCandidate:
    """A discovered repository, and what decides about it."""

    repository: Repository
    rules: TrackingRules
    listed: ListedRepository | None


@dataclass(frozen=True)
class Exclusion:
    """One reason for which repositories are not tracked."""

    reason: str
    count: int
    examples: tuple[str, ...]
    """Those with the most stars, as `owner/repo: figure`."""


def tracking_items(
    rows: Sequence[Repository], rules: TrackingRules, listed: Mapping[str, ListedRepository]
) -> list[WorkItem[RepositoryCandidate]]:
    """One item a repository; it is pending when the repository, the rules, or its line of the list changed."""
    items: list[WorkItem[RepositoryCandidate]] = []
    for row in rows:
        entry = entry_for(row, listed)
        decided = None if entry is None else (entry.verdict, entry.reason)
        inputs = fingerprint(Stage.REPOSITORIES, row.model_dump(mode="json"), rules.model_dump(mode="json"), decided)
        items.append(WorkItem(row.full_name, inputs, RepositoryCandidate(row, rules, entry)))
    return items


async def decide(item: WorkItem[RepositoryCandidate]) -> Outcome[Repository]:
    """Judge one repository; a rejected one is also the value, so that its data in the month can be removed.

    Raises ItemFailure (`vanished`) for one that is not on GitHub any more.
    """
    repository, listed = item.value.repository, item.value.listed
    rejection = judge(repository, item.value.rules, listed)
    if rejection is not None:
        return Outcome(repository, detail=rejection.detail, rejection=rejection)
    if repository.state is RepositoryState.VANISHED:
        raise ItemFailure(FailureKind.VANISHED, f"{repository.full_name} is not on GitHub, or not any more")
    parts = [f"asv configuration at {repository.config_path}"] if repository.config_path else []
    if listed is not None:
        parts.append(f"allowed: {listed.reason}")
    if repository.archived_at is not None:
        parts.append(f"archived on {repository.archived_at:%Y-%m-%d}")
    return Outcome(detail="; ".join(parts))


def cost_of(usage: Iterable[ApiUsage]) -> Cost:
    """Return the requests of a source as the cost of the item."""
    return Cost.total(Cost(api_points=asked.points, api_requests=asked.requests, bytes=asked.bytes) for asked in usage)


def needs_discovery(
    rows: Sequence[Repository], listed: Mapping[str, ListedRepository], others: Collection[str] = ()
) -> bool:
    """Return True if the list changed in a way that needs a new discovery; *others* are looked up regardless of it.

    A name may be new on it; or a repository that was found only by its name may have been removed from it.
    """
    known = {name.lower() for name in others}
    by_name = [row for row in rows if not row.config_path and (row.node_id or row.state is RepositoryState.VANISHED)]
    return bool(not_among(listed, rows)) or any(
        entry_for(row, listed) is None and not known & {name.lower() for name in (row.full_name, *row.aliases)}
        for row in by_name
    )


def tracked_before(connection: Connection, month: str) -> tuple[str, ...]:
    """Return what the newest month before *month* with a tracked repository tracked, or did not get to decide.

    A run with `only` leaves the others undecided, and a repository that fails once may be there again.
    """
    months = ledger.months_with_done(connection, Stage.REPOSITORIES, ItemKind.REPOSITORY, before=month)
    if not months:
        return ()
    entries = ledger.entries_of(connection, months[-1], Stage.REPOSITORIES, ItemKind.REPOSITORY)
    return tuple(entry.item for entry in entries if entry.state is not ItemState.REJECTED)


def reappeared(connection: Connection, month: str) -> set[str]:
    """Items of intake that failed because their repository was gone, and whose repository was discovered since."""
    discovered = [
        entry for entry in ledger.entries_of(connection, month, Stage.REPOSITORIES) if entry.item == DISCOVERY
    ]
    seen = discovered[0].finished_at if discovered else None
    return {
        entry.item
        for entry in ledger.entries_of(connection, month, Stage.PULL_REQUESTS)
        if entry.state is ItemState.FAILED
        and entry.reason == FailureKind.VANISHED
        and seen is not None
        and (entry.finished_at is None or entry.finished_at < seen)
    }


def exclusions(standing: Sequence[LedgerEntry], rows: Sequence[Repository]) -> list[Exclusion]:
    """Why repositories are not tracked, the most frequent reason first, however many they are."""
    stars = {row.full_name: row.stars for row in rows}
    by_reason: dict[str, list[LedgerEntry]] = {}
    for entry in standing:
        if entry.state in (ItemState.REJECTED, ItemState.FAILED):
            by_reason.setdefault(entry.reason, []).append(entry)
    listed: list[Exclusion] = []
    for reason, entries in by_reason.items():
        first = sorted(entries, key=lambda entry: (-stars.get(entry.item, 0), entry.item))[:EXAMPLES]
        listed.append(Exclusion(reason, len(entries), tuple(f"{entry.item}: {entry.detail}" for entry in first)))
    return sorted(listed, key=lambda exclusion: (-exclusion.count, exclusion.reason))


def standing_of(
    line: ListedRepository, rows: Sequence[Repository], entries: Sequence[LedgerEntry]
) -> LedgerEntry | None:
    """Return how the repository of a *line* of the list ended the month; None if the month does not know it."""
    for row in rows:
        if entry_for(row, {line.full_name.lower(): line}) is not None:
            return next((entry for entry in entries if entry.item == row.full_name), None)
    return None
