"""GitHub as a source of intake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formulacode_dagster.models.intake import FinishWindow, OnGap
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository

from .discovery import discover_repositories
from .merged import take_in
from .metered import MeteredClient
from .search_limits import PUBLIC, SearchLimits


@dataclass
class GitHubSource(MeteredClient):
    """An IntakeSource over a client."""

    searches: SearchLimits = PUBLIC
    code_searches: SearchLimits = PUBLIC

    async def discover(
        self, month: Month, wanted: tuple[str, ...] = (), on_gap: OnGap | None = None
    ) -> tuple[Repository, ...]:
        """Every repository with an asv configuration, and those *wanted* by name; as `discover_repositories`."""
        return await discover_repositories(self.client, month, wanted, self.code_searches, on_gap)

    async def take_in(self, month: Month, repositories: Sequence[Repository], finish: FinishWindow) -> None:
        """Call `merged.take_in` for all *repositories* together, since searches of several share a request."""
        await take_in(self.client, month, repositories, finish, self.searches)
