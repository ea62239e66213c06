"""Pending items: those a run is limited to, minus those that are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import ItemKind, ItemState, LedgerEntry, RunOptions, repository_of
from formulacode_dagster.models.reasons import REPAIRABLE_KINDS, TRANSIENT_KINDS, FailureKind

from .work import T, WorkItem

MAX_ATTEMPTS = 3


def within(options: RunOptions, items: Sequence[WorkItem[T]]) -> tuple[list[WorkItem[T]], list[WorkItem[T]]]:
    """*items* that a run with *options* is to look at, and the others."""
    # as on GitHub, case does not matter
    names = {str(ItemName.parse(text)).lower() for text in options.only}
    asked: list[WorkItem[T]] = []
    excluded: list[WorkItem[T]] = []
    per_repository: Counter[str] = Counter()
    for item in items:
        # a requested pull request needs its repository's intake
        wanted = (
            item.kind is ItemKind.STEP
            or not names
            or item.name.lower() in names
            or item.repository.lower() in names
            or _holds_wanted(item, names)
        )
        is_within = (
            options.limit_per_repository is None or per_repository[item.repository] < options.limit_per_repository
        )
        is_pull_request = item.kind is ItemKind.PULL_REQUEST
        if wanted and (is_within or not is_pull_request):
            per_repository[item.repository] += is_pull_request
            asked.append(item)
        else:
            excluded.append(item)
    return asked, excluded


def is_pending(item: WorkItem[T], entry: LedgerEntry | None) -> bool:
    """Return True if *item*, which last ended as *entry*, is pending: new, changed, skipped, or retryable."""
    if entry is None or entry.inputs != item.inputs or entry.state is ItemState.SKIPPED:
        return True
    if entry.state is not ItemState.FAILED:
        return False
    # without a step, its stage does nothing else
    if item.kind is ItemKind.STEP or entry.reason in REPAIRABLE_KINDS:
        return True
    return entry.reason in TRANSIENT_KINDS and entry.attempt < MAX_ATTEMPTS


def is_unfinished(entry: LedgerEntry) -> bool:
    """Return True if *entry* ran out of time where another attempt continues."""
    return entry.reason == FailureKind.SURVEY_UNFINISHED and entry.attempt < MAX_ATTEMPTS


def _holds_wanted(item: WorkItem[T], names: set[str]) -> bool:
    return item.kind is ItemKind.REPOSITORY and any(repository_of(wanted) == item.name.lower() for wanted in names)
