"""GitHub as a source of intake, and a client as a stage has it: opened, closed, and its usage booked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from formulacode_dagster.models.intake import ApiUsage, FinishWindow, OnGap
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .discovery import discover_repositories
from .merged import take_in
from .search_limits import PUBLIC, SearchLimits


@dataclass
class MeteredClient:
    """Asks GitHub over *client*, which it opens and closes; usage is booked for *stage*, *month* and *run_id*."""

    client: GitHubTransport
    stage: Stage
    month: str
    run_id: str

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.__aexit__()

    def usage(self) -> tuple[ApiUsage, ...]:
        """Return the requests so far, by GitHub's resource."""
        return self.client.usage(run_id=self.run_id, stage=self.stage, month=self.month)


@dataclass
class GitHubSource(MeteredClient):
    """An IntakeSource over a client."""

    searches: SearchLimits = PUBLIC
    code_searches: SearchLimits = PUBLIC
    candidates: Mapping[str, str] = field(default_factory=dict)
    search_code: bool = True

    async def discover(
        self, month: Month, wanted: tuple[str, ...] = (), on_gap: OnGap | None = None
    ) -> tuple[Repository, ...]:
        """Every repository with an asv configuration, and those *wanted* by name; as `discover_repositories`."""
        return await discover_repositories(
            self.client,
            month,
            wanted,
            self.code_searches,
            on_gap,
            candidates=self.candidates,
            search_code=self.search_code,
        )

    async def take_in(self, month: Month, repositories: Sequence[Repository], finish: FinishWindow) -> None:
        """Call `merged.take_in` for all *repositories* together, since searches of several share a request."""
        await take_in(self.client, month, repositories, finish, self.searches)
