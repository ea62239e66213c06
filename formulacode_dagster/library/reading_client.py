"""The platform's GitHub client, with its settings as defaults and methods that read what is known by a name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from formulacode_dagster.git.changes import change_of
from formulacode_dagster.git.landing import wanted_commits
from formulacode_dagster.git.mirror import MirrorCache
from formulacode_dagster.github import reading
from formulacode_dagster.github.transport import client
from formulacode_dagster.github.transport.tokens import TokenPool
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.links import Link
from formulacode_dagster.models.pull_request import Change, ChangedFile
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.timeline import TimelineEvent
from resources.settings import make_home, read_settings


class ReadingClient(client.GitHubClient):
    """Used as an async context manager: `async with GitHubClient(tokens=[...]) as client`.

    *tokens* default to `GH_TOKENS`, *url* to `GITHUB_API_URL`, *mirrors* to the platform's; limits are kept together
    with the runs of the same `FC_HOME`. Every method raises as the platform's client does: OutsideSystemError when
    GitHub is dead, ConfigurationError when it demands a token, ItemFailure with a `kind` when it refuses this request.
    """

    def __init__(
        self,
        tokens: Sequence[str] | TokenPool | None = None,
        *,
        url: str = "",
        mirrors: MirrorCache | None = None,
        **more: Any,
    ) -> None:
        """*more* goes to the platform's client (`pacing`, `on_wait`, …)."""
        settings = read_settings()
        more.setdefault("home", make_home())
        super().__init__(url or settings.github_api_url, settings.github_tokens if tokens is None else tokens, **more)
        self._mirrors = mirrors

    async def get_diff(self, repository: str, number: int) -> bytes:
        """The whole diff. Where GitHub gives none, beyond 300 files or 20,000 lines, it is read from a mirror."""
        try:
            return await reading.read_diff(self, repository, number)
        except ItemFailure as failure:
            if failure.kind != FailureKind.TOO_LARGE:
                raise
            return (await self._from_mirror(repository, number))[1]

    async def get_files(self, repository: str, number: int) -> tuple[ChangedFile, ...]:
        """Every changed file. Where GitHub does not list them all, beyond 3,000, they are read from a mirror."""
        try:
            return await reading.read_files(self, repository, number)
        except ItemFailure as failure:
            if failure.kind != FailureKind.TOO_LARGE:
                raise
            return (await self._from_mirror(repository, number))[0].files

    async def get_issue(self, repository: str, number: int, *, before: datetime | None = None) -> Link:
        """An issue (or pull request) with its comments; with *before*, as it stood at that moment."""
        return await reading.read_thread(self, repository, number, before)

    async def get_timeline(self, repository: str, number: int) -> tuple[TimelineEvent, ...]:
        """Everything that happened to an issue or pull request, oldest first."""
        return await reading.read_timeline(self, repository, number)

    async def _from_mirror(self, repository: str, number: int) -> tuple[Change, bytes]:
        facts = await reading.read_pull_request(self, repository, number)
        settings = read_settings()
        mirrors = self._mirrors or MirrorCache(settings.mirrors_root, settings.github_clone_url)

        def change() -> tuple[Change, bytes]:
            with mirrors.ensure(facts.repository, commits=wanted_commits([facts])) as mirror:
                return change_of(mirror, facts)

        return await asyncio.to_thread(change)
