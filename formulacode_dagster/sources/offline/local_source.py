"""Common parts of local sources: repositories one by one, since batches save nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.intake import ApiUsage, FinishWindow, MergedWindow
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository


class LocalSource:
    """All of an IntakeSource but `discover`, made of the windows of single repositories."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """There is nothing to open."""

    async def window(self, repository: Repository, month: Month) -> MergedWindow:
        """Every pull request of *repository* merged in *month*; raises ItemFailure."""
        raise NotImplementedError

    async def take_in(self, month: Month, repositories: Sequence[Repository], finish: FinishWindow) -> None:
        """*finish* each of *repositories* with its window, or the error about it.

        Raises OutsideSystemError and ConfigurationError of a window: no other repository would fare better.
        """

        async def take_in(repository: Repository) -> None:
            (end,) = await asyncio.gather(self.window(repository, month), return_exceptions=True)
            if isinstance(end, (OutsideSystemError, ConfigurationError)):
                raise end
            if not isinstance(end, (MergedWindow, Exception)):
                raise end
            finish(repository, end)

        tasks = [asyncio.create_task(take_in(repository)) for repository in repositories]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def usage(self) -> tuple[ApiUsage, ...]:
        """Return nothing: no requests are made."""
        return ()
