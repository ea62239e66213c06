"""What intake hands on, wherever it came from: repositories, windows of merged pull requests, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, Self

from pydantic import Field

from .base import Frozen, MonthRow
from .items import Cost, Stage
from .month import Month
from .pull_request import IntakeCount, MergedPullRequest
from .repository import Repository


class ListVerdict(StrEnum):
    """What people decided about a repository."""

    ALLOW = "allow"
    DENY = "deny"


class ListedRepository(Frozen):
    """One line of the maintained allow and deny list."""

    full_name: str
    verdict: ListVerdict
    reason: str
    listed_at: datetime


class ApiFigures(Frozen):
    """What was asked of one of GitHub's resources."""

    requests: int = 0
    points: int = Field(default=0, description="of the primary limit, as GitHub counts them")
    unchanged: int = Field(default=0, description="requests answered 304, which cost nothing")
    retries: int = Field(default=0, description="requests sent again after a passing fault")
    limit_hits: int = Field(default=0, description="refusals for a primary or secondary limit")
    seconds: float = Field(default=0.0, description="spent on the wire")
    waited_seconds: float = Field(default=0.0, description="waited for limits, pacing and before retries")
    bytes: int = 0


class ApiUsage(ApiFigures):
    """What one run asked of one of GitHub's resources in one stage of one month."""

    run_id: str
    stage: Stage
    month: str
    resource: str = Field(description="core, code_search or graphql, as in `x-ratelimit-resource`")
    started_at: datetime


class SearchGap(MonthRow):
    """A search that showed fewer files than it counted, also when asked again: GitHub's counts are approximate.

    Or one over which GitHub ran out of time, also when asked again: its count is of what was searched by then.
    """

    query: str = Field(description="the search, as it was sent")
    counted: int = Field(description="files that GitHub counts")
    found: int = Field(description="files that it showed")
    ran_out: bool = Field(default=False, description="GitHub ran out of time over it: nobody knows how many it lacks")


OnGap = Callable[[SearchGap], None]


@dataclass(frozen=True)
class MergedWindow:
    """The merged pull requests of one repository's month, by number, and how they compare with the source's count."""

    pull_requests: tuple[MergedPullRequest, ...]
    count: IntakeCount
    cost: Cost = field(default=Cost(), compare=False)
    """This window's share of what was asked for several windows at once; the shares add up to the whole."""

    @classmethod
    def of(
        cls, repository: Repository, month: Month, rows: Sequence[MergedPullRequest], *, reported: int
    ) -> MergedWindow:
        """The window of *repository* with these *rows*, of which the source says that there are *reported*."""
        count = IntakeCount(
            month=month.key,
            repository_id=repository.id,
            repository=repository.full_name,
            reported=reported,
            stored=len(rows),
        )
        return cls(tuple(rows), count)


FinishWindow = Callable[[Repository, MergedWindow | Exception], None]
"""Called once for each repository, as soon as it is known how it ends."""


class Metered(Protocol):
    """Something that asks GitHub while it is open, as an async context manager, and knows what it asked."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    def usage(self) -> tuple[ApiUsage, ...]:
        """What was asked so far, a line per resource; empty for something that asks nobody."""
        ...


class IntakeSource(Metered, Protocol):
    """Where repositories and pull requests come from: GitHub, files, or a folder of mirrors.

    Methods raise OutsideSystemError and ConfigurationError for the whole source; `discover` raises
    ItemFailure.
    """

    async def discover(
        self, month: Month, wanted: tuple[str, ...] = (), on_gap: OnGap | None = None
    ) -> tuple[Repository, ...]:
        """Every repository known to keep an asv suite, and those of *wanted* (by name) whatever they hold.

        *on_gap* hears of searches that stay short. Unfiltered: stars, language, forks and lists are judged by the rules
        of tracking, each with its reason.
        """
        ...

    async def take_in(self, month: Month, repositories: Sequence[Repository], finish: FinishWindow) -> None:
        """*finish* each of *repositories* with every pull request that it merged in *month*, never fewer; or with an
        ItemFailure or Rejection. What concerns the whole source is raised; those not finished by then are not taken in.
        """
        ...
