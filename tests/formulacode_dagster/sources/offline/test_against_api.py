"""The same repositories asked of an API and read from their mirrors: the rows are the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from formulacode_dagster.models.intake import IntakeSource
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.repository import RepositoryState
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.offline.mirrors import MirrorsSource
from sandbox.github import app
from sandbox.samples import generate
from sandbox.server import serving
from tests.support.intake import windows_of

MONTHS = (Month.parse("2026-01"), Month.parse("2026-02"))


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Here, the sandbox is used."""


def taken(source: IntakeSource) -> dict[str, MergedPullRequest]:
    async def inside() -> dict[str, MergedPullRequest]:
        async with source:
            rows = [row for row in await source.discover(MONTHS[0]) if row.state is RepositoryState.ACTIVE]
            windows = await asyncio.gather(*(windows_of(source, month, rows) for month in MONTHS))
            return {
                pull_request.item: pull_request
                for of_month in windows
                for window in of_month
                for pull_request in window.pull_requests
            }

    return asyncio.run(inside())


@pytest.mark.slow
def test_mirrors_with_their_side_file_tell_what_the_api_tells(tmp_path: Path):
    folder = generate(tmp_path / "samples").folder
    with serving(app(folder)) as url:
        asked = taken(GitHubSource(GitHubTransport(url, ["token"]), Stage.PULL_REQUESTS, MONTHS[0].key, "run"))
    assert taken(MirrorsSource(folder)) == asked
    assert len(asked) == 41
