"""The expected results of a month's samples, by their definitions."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.classification import Category
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import RejectionReason
from sandbox.samples.catalog import catalog, repositories
from sandbox.samples.definitions import SampleRepository


class ExpectedOutcome(Frozen):
    """How an item ends: the last stage that has an entry of it in the ledger, and what that entry says."""

    item: str = Field(description="`owner/repo#number`, or `owner/repo` for a repository that is not tracked")
    last_stage: Stage
    state: ItemState
    reason: str = ""
    category: Category | None = Field(default=None, description="the model's; None when it says no, or is not asked")
    why: str = Field(description="what the item stands for")


def expected_outcomes(month: str, names: Collection[str] = ()) -> tuple[ExpectedOutcome, ...]:
    """How every pull request merged in *month* (`2026-02`) ends, and every repository that is not tracked.

    With *names*, only of these repositories.
    """
    window = Month.parse(month)
    of_repositories = tuple(
        ExpectedOutcome(
            item=repository.name,
            last_stage=Stage.REPOSITORIES,
            state=ItemState.REJECTED,
            reason=reason,
            why=repository.why,
        )
        for repository in repositories()
        if (reason := _why_not_tracked(repository)) is not None
    )
    of_pull_requests = tuple(
        ExpectedOutcome(
            item=pull_request.item,
            last_stage=expected.last_stage,
            state=expected.state,
            reason=expected.reason,
            category=expected.category,
            why=pull_request.why,
        )
        for pull_request in catalog()
        if pull_request.month == window and (expected := pull_request.expected) is not None
    )
    found = of_repositories + of_pull_requests
    return tuple(each for each in found if each.item.partition("#")[0] in names) if names else found


LEFT_BY_CHANCE = frozenset({RejectionReason.INCONCLUSIVE, RejectionReason.SLOWER})
"""Possible ends of a patch without effect on a busy machine: its measurement allows a false direction in a hundred."""


def settled(reason: str, expected: str) -> str:
    """Return *reason*, or `no_speedup` if that is *expected* and *reason* may come by chance: neither is a task."""
    return expected if expected == RejectionReason.NO_SPEEDUP and reason in LEFT_BY_CHANCE else reason


def _why_not_tracked(repository: SampleRepository) -> RejectionReason | None:
    if repository.fork_of is not None:
        return RejectionReason.FORK
    return RejectionReason.ARCHIVED if repository.archived_at is not None else None
