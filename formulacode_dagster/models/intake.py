"""Results of intake, whatever the source: repositories, windows of merged pull requests, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
    """A person's decision about a repository."""

    ALLOW = "allow"
    DENY = "deny"


class ListedRepository(Frozen):
    """One line of the maintained allow and deny list."""

    full_name: str
    verdict: ListVerdict
    reason: str
    listed_at: datetime


class ApiFigures(Frozen):
    """Requests to one of GitHub's resources."""

    requests: int = 0
    points: int = Field(default=0, description="of the primary limit, as GitHub counts them")
    unchanged: int = Field(default=0, description="requests answered 304, free of charge; 0, since none is conditional")
    retries: int = Field(default=0, description="requests sent again after a passing fault")
    limit_hits: int = Field(default=0, description="refusals for a primary or secondary limit")
    seconds: float = Field(default=0.0, description="spent on the wire")
    waited_seconds: float = Field(default=0.0, description="waited for limits, pacing and before retries")
    bytes: int = 0


class ApiUsage(ApiFigures):
    """Requests of one run to one of GitHub's resources, in one stage of one month."""

    run_id: str
    stage: Stage
    month: str
    resource: str = Field(description="core, code_search or graphql, as in `x-ratelimit-resource`")
    started_at: datetime


class SearchGap(MonthRow):
    """A search that showed fewer files than it counted, also when asked again: GitHub's counts are approximate.

    Or a search over which GitHub timed out, also when repeated: its count covers only what was searched by then.
    """

    query: str = Field(description="the search, as it was sent")
    counted: int = Field(description="files that GitHub counts")
    found: int = Field(description="files that it showed")
    ran_out: bool = Field(default=False, description="GitHub timed out: the number of missing results is unknown")


OnGap = Callable[[SearchGap], None]


@dataclass(frozen=True)
class MergedWindow:
    """The merged pull requests of one repository's month, by number, and how they compare with the source's count."""

    pull_requests: tuple[MergedPullRequest, ...]
    count: IntakeCount
    cost: Cost = field(default=Cost(), compare=False)
    """This window's share of a request for several windows; the shares add up to the whole."""

    @classmethod
    def of(
        cls, repository: Repository, month: Month, rows: Sequence[MergedPullRequest], *, reported: int
    ) -> MergedWindow:
        """Return the window of *repository* with these *rows*; *reported* is the source's own count."""
        count = IntakeCount(
            month=month.key,
            repository_id=repository.id,
            repository=repository.full_name,
            reported=reported,
            stored=len(rows),
        )
        return cls(tuple(rows), count)

    def called(self, name: str) -> MergedWindow:
        """Return this window with its repository called *name*, also where pull requests close issues of it."""
        if name == self.count.repository:
            return self

        def rename(row: MergedPullRequest) -> MergedPullRequest:
            here = self.count.repository.lower()
            issues = [
                issue.model_copy(update={"repository": name}) if issue.repository.lower() == here else issue
                for issue in row.linked_issues
            ]
            return row.model_copy(update={"repository": name, "linked_issues": tuple(issues)})

        rows = tuple(rename(row) for row in self.pull_requests)
        return replace(self, pull_requests=rows, count=self.count.model_copy(update={"repository": name}))


FinishWindow = Callable[[Repository, MergedWindow | Exception], None]
"""Called once for each repository, as soon as it is known how it ends."""


class Metered(Protocol):
    """A source of data that may ask GitHub; an async context manager that counts its requests."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    def usage(self) -> tuple[ApiUsage, ...]:
        """Return the requests so far, one entry per resource; empty for a source that asks nobody."""
        ...


class IntakeSource(Metered, Protocol):
    """A source of repositories and pull requests: GitHub, files, or a folder of mirrors.

    Methods raise OutsideSystemError and ConfigurationError for the whole source; `discover` raises
    ItemFailure.
    """

    async def discover(
        self, month: Month, wanted: tuple[str, ...] = (), on_gap: OnGap | None = None
    ) -> tuple[Repository, ...]:
        """Return every repository known to have an asv suite, and those of *wanted* (by name) regardless.

        *on_gap* hears of searches that stay short. Unfiltered: stars, language, forks and lists are judged by the rules
        of tracking, each with its reason.
        """
        ...

    async def take_in(self, month: Month, repositories: Sequence[Repository], finish: FinishWindow) -> None:
        """*finish* each of *repositories* with every pull request merged in *month*, never fewer; or with an
        ItemFailure or Rejection. Problems of the whole source are raised; repositories not finished by then are not
        taken in.
        """
        ...
