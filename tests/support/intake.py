"""Asking a source of intake for windows."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.intake import IntakeSource, MergedWindow
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository


async def window_ends(
    source: IntakeSource, month: Month, repositories: Sequence[Repository]
) -> list[MergedWindow | Exception]:
    """How the window of each of *repositories* ends; what stops the whole source ends those that it left open."""
    ends: dict[int, MergedWindow | Exception] = {}

    def finish(repository: Repository, end: MergedWindow | Exception) -> None:
        assert repository.id not in ends
        ends[repository.id] = end

    try:
        await source.take_in(month, repositories, finish)
    except (OutsideSystemError, ConfigurationError) as error:
        ends = {repository.id: error for repository in repositories} | ends
    return [ends[repository.id] for repository in repositories]


async def windows_of(source: IntakeSource, month: Month, repositories: Sequence[Repository]) -> list[MergedWindow]:
    """The window of each of *repositories*; raises what ends one without."""
    windows: list[MergedWindow] = []
    for end in await window_ends(source, month, repositories):
        if isinstance(end, Exception):
            raise end
        windows.append(end)
    return windows
