"""Taking in repositories one by one, where asking for several at once saves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.intake import FinishWindow, MergedWindow
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository

Window = Callable[[Repository, Month], Awaitable[MergedWindow]]


async def take_in_one_by_one(
    window: Window, month: Month, repositories: Sequence[Repository], finish: FinishWindow
) -> None:
    """*finish* each of *repositories* with what *window* returns, or raises about it.

    Raises OutsideSystemError and ConfigurationError of *window*: no other repository would fare better.
    """

    async def take_in(repository: Repository) -> None:
        (end,) = await asyncio.gather(window(repository, month), return_exceptions=True)
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
