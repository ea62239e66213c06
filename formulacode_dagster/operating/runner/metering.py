"""Requests of a stage to GitHub, stored for the stage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.intake import Metered
from formulacode_dagster.operating.store.usage import add_usage

from .work import StageRun

Source = TypeVar("Source", bound=Metered)


@asynccontextmanager
async def metered(run: StageRun, source: Source) -> AsyncIterator[Source]:
    """Open *source* for the length of a `with` block; its requests are stored afterwards, also after a failure."""
    try:
        async with source:
            yield source
    except BaseException:
        # the original failure matters more than the usage, which cannot be stored if the database is gone
        with suppress(FormulaCodeError):
            await asyncio.to_thread(_store_usage, run, source)
        raise
    await asyncio.to_thread(_store_usage, run, source)


def _store_usage(run: StageRun, source: Metered) -> None:
    with run.database.transaction() as connection:
        add_usage(connection, source.usage())
