"""GitHub as a source of intake."""

from __future__ import annotations

from collections import defaultdict
from types import TracebackType
from typing import Self

from formulacode_dagster.github.transport.client import GitHubClient
from formulacode_dagster.models.intake import ApiUsage, MergedWindow
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository

from .batches import Batches, Calls
from .counting import Ended
from .discovery import discover_repositories
from .merged import take_in
from .together import together

Asked = tuple[Repository, Month]


class GitHubSource:
    """An IntakeSource over *client*, which it opens and closes; its usage is booked for *stage*, *month* and *run_id*.

    Windows that are asked for at the same time are asked together. `window` raises as `merged.take_in` ends it.
    """

    def __init__(self, client: GitHubClient, stage: Stage, month: str, run_id: str) -> None:
        self._client = client
        self._stage = stage
        self._month = month
        self._run_id = run_id
        self._windows: Batches[Asked, MergedWindow] = Batches(self._take_in)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._windows.close()
        await self._client.__aexit__(kind, error, trace)

    async def discover(self, month: Month, wanted: tuple[str, ...] = ()) -> tuple[Repository, ...]:
        """Every repository with an asv configuration, and those *wanted* by name; ItemFailure when some are missing."""
        return await discover_repositories(self._client, month, wanted)

    async def window(self, repository: Repository, month: Month) -> MergedWindow:
        """What *repository* merged in *month*; its cost is its share of the searches it had a part in."""
        return await self._windows.ask((repository, month))

    def usage(self) -> tuple[ApiUsage, ...]:
        """What was asked so far, by GitHub's resource."""
        return self._client.usage(run_id=self._run_id, stage=self._stage, month=self._month)

    async def _take_in(self, calls: Calls[Asked, MergedWindow]) -> None:
        months: dict[Month, list[Repository]] = defaultdict(list)
        for repository, month in calls.keys:
            months[month].append(repository)
        await together(self._of_month(calls, month, repositories) for month, repositories in months.items())

    async def _of_month(self, calls: Calls[Asked, MergedWindow], month: Month, repositories: list[Repository]) -> None:
        def finish(repository: Repository, end: MergedWindow | Ended) -> None:
            if isinstance(end, MergedWindow):
                calls.answer((repository, month), end)
            else:
                calls.fail((repository, month), end)

        await take_in(self._client, month, repositories, finish)
