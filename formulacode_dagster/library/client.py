"""A pull request as a person names it, and the client that reads it: the platform's, with its settings as defaults."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, field_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError, ItemFailure
from formulacode_dagster.models.identity import ItemName, item_key
from formulacode_dagster.models.links import Link
from formulacode_dagster.models.pull_request import Change, ChangedFile, MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.lookup import StoredPullRequest, find_pull_request
from formulacode_dagster.releasing.dataset.records import month_records
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.landing import wanted_commits
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.github import reading
from formulacode_dagster.sources.github.timeline import TimelineEvent
from formulacode_dagster.sources.github.transport import client
from formulacode_dagster.sources.github.transport.tokens import TokenPool
from resources.database import has_database
from resources.settings import make_home, read_settings

from .records import opened


class Source(StrEnum):
    """Source of a pull request's facts."""

    NAME = "name"
    DATABASE = "database"
    GITHUB = "github"


class PR(Frozen):
    """A name, and the data fetched for it.

    `facts` and `change` are the same models that the pipeline's stages exchange (`models.pull_request`); a PR adds no
    second record of them, only its name, and which of them are present.
    """

    repository: str = Field(description="`owner/repo`")
    issue_number: int = Field(gt=0)
    facts: MergedPullRequest | None = Field(default=None, repr=False)
    change: Change | None = Field(default=None, repr=False)
    patch: bytes | None = Field(default=None, repr=False, description="as a diff; the database's one is verified")
    source: Source = Source.NAME

    @field_validator("repository")
    @classmethod
    def _is_a_name(cls, text: str) -> str:
        try:
            name = ItemName.parse(text)
        except FormulaCodeError as error:
            raise ValueError(str(error)) from error
        if name.number is not None:
            raise ValueError(f"{text!r} names a pull request; give its number as issue_number")
        return name.repository

    @property
    def item(self) -> str:
        """`owner/repo#number`, as the ledger and the command line name it."""
        return item_key(self.repository, self.issue_number)

    @property
    def cache_key(self) -> str:
        """The name under which results of hooks are kept: equal for every spelling of the repository."""
        return self.item.lower()

    @classmethod
    async def fetch(
        cls,
        repository: str,
        issue_number: int,
        *,
        client: GitHubClient | None = None,
        database: Database | str | None = None,
    ) -> Self:
        """Fetch from the database if it has the pull request with its patch, else from GitHub; `source` says which.

        *database* is one, its URL, or None for that of the settings, which is not made only to look into it. From
        GitHub, it costs 1 GraphQL point and 1 REST call, with *client* or one of the settings; nothing is stored.
        Raises as `GitHubClient.get_pr` and `get_diff` do.
        """
        named = cls(repository=repository, issue_number=issue_number)
        stored = await asyncio.to_thread(_look_up, named, database)
        if stored is not None and stored.patch is not None:
            return named.model_copy(
                update={
                    "facts": stored.facts,
                    "change": stored.change,
                    "patch": stored.patch,
                    "source": Source.DATABASE,
                }
            )
        if client is not None:
            return await named._from_github(client)
        async with GitHubClient() as own:
            return await named._from_github(own)

    def to_record(self, *, database: Database | str | None = None) -> TaskRecords:
        """Return its future record of the dataset, from *database* (one, its URL, or None for that of the settings).

        Raises ConfigurationError if it is not known there as a task.
        """
        with opened(database) as store, store.transaction() as connection:
            stored = find_pull_request(connection, self.repository, self.issue_number)
            of_month = month_records(connection, stored.facts.month) if stored else {}
        record = of_month.get(stored.facts.item) if stored else None
        if record is None:
            remedy = f"`fc-data why {self.item}` shows how far it got"
            raise ConfigurationError(f"{self.item} is no task", remedy=remedy)
        return record

    async def _from_github(self, client: GitHubClient) -> Self:
        facts = await reading.read_pull_request(client, self.repository, self.issue_number)
        patch = await client.get_diff(self.repository, self.issue_number)
        return self.model_copy(update={"facts": facts, "patch": patch, "source": Source.GITHUB})


def _look_up(named: PR, database: Database | str | None) -> StoredPullRequest | None:
    if database is None and not has_database():
        return None
    with opened(database) as store, store.transaction() as connection:
        return find_pull_request(connection, named.repository, named.issue_number)


class GitHubClient(client.GitHubTransport):
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

    async def get_pr(self, repository: str, number: int) -> PR:
        """The facts of a merged pull request, without its patch; ItemFailure `vanished` or `not_merged`."""
        facts = await reading.read_pull_request(self, repository, number)
        return PR(repository=facts.repository, issue_number=number, facts=facts, source=Source.GITHUB)

    async def get_diff(self, repository: str, number: int) -> bytes:
        """The whole diff. If GitHub gives none, beyond 300 files or 20,000 lines, it is read from a mirror."""
        try:
            return await reading.read_diff(self, repository, number)
        except ItemFailure as failure:
            if failure.kind != FailureKind.TOO_LARGE:
                raise
            return (await self._from_mirror(repository, number))[1]

    async def get_files(self, repository: str, number: int) -> tuple[ChangedFile, ...]:
        """Every changed file. If GitHub does not list them all, beyond 3,000, they are read from a mirror."""
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
        mirrors = self._mirrors or MirrorCache(settings.mirrors_root, settings.clone_url)

        def change() -> tuple[Change, bytes]:
            with mirrors.ensure(facts.repository, commits=wanted_commits([facts])) as mirror:
                return change_of(mirror, facts)

        return await asyncio.to_thread(change)
