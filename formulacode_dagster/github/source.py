"""GitHub as a source of intake."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from formulacode_dagster.github.transport.client import GitHubClient
from formulacode_dagster.models.intake import ApiUsage, FinishWindow, OnGap
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository

from .discovery import discover_repositories
from .merged import take_in
from .search_limits import PUBLIC, SearchLimits


class GitHubSource:
    """An IntakeSource over *client*, which it opens and closes; usage is told with *stage*, *month* and *run_id*."""

    def __init__(
        self,
        client: GitHubClient,
        stage: Stage,
        month: str,
        run_id: str,
        *,
        searches: SearchLimits = PUBLIC,
        code_searches: SearchLimits = PUBLIC,
    ) -> None:
        self._client = client
        self._stage = stage
        self._month = month
        self._run_id = run_id
        self._searches = searches
        self._code_searches = code_searches

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def discover(
        self, month: Month, wanted: tuple[str, ...] = (), on_gap: OnGap | None = None
    ) -> tuple[Repository, ...]:
        """Every repository with an asv configuration, and those *wanted* by name; as `discover_repositories`."""
        return await discover_repositories(self._client, month, wanted, self._code_searches, on_gap)

    async def take_in(self, month: Month, repositories: Sequence[Repository], finish: FinishWindow) -> None:
        """As `merged.take_in`: all *repositories* at once, for searches of several share a request."""
        await take_in(self._client, month, repositories, finish, self._searches)

    def usage(self) -> tuple[ApiUsage, ...]:
        """What was asked so far, by GitHub's resource."""
        return self._client.usage(run_id=self._run_id, stage=self._stage, month=self._month)
