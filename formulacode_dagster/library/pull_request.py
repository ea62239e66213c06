"""A pull request as a person names it."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Self

from pydantic import Field, field_validator

from formulacode_dagster.github.reading import read_pull_request
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.identity import ItemName, item_key
from formulacode_dagster.models.pull_request import Change, MergedPullRequest
from formulacode_dagster.store.database import Database
from formulacode_dagster.store.lookup import StoredPullRequest, find_pull_request
from resources.database import has_database, open_database

from .reading_client import ReadingClient


class Source(StrEnum):
    """Where what is known of a pull request comes from."""

    NAME = "name"
    DATABASE = "database"
    GITHUB = "github"


class PR(Frozen):
    """A name, and behind it what was fetched.

    `facts` and `change` are the very models that the pipeline's stages hand to each other (`models.pull_request`);
    a PR adds no second record of them, only the name by which it is asked for, and which of them are there.
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
        client: ReadingClient | None = None,
        database: Database | str | None = None,
    ) -> Self:
        """From the database where it is there with its patch, else from GitHub; `source` says which.

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
        async with ReadingClient() as own:
            return await named._from_github(own)

    async def _from_github(self, client: ReadingClient) -> Self:
        facts = await read_pull_request(client, self.repository, self.issue_number)
        patch = await client.get_diff(self.repository, self.issue_number)
        return self.model_copy(update={"facts": facts, "patch": patch, "source": Source.GITHUB})


def _look_up(named: PR, database: Database | str | None) -> StoredPullRequest | None:
    if isinstance(database, Database):
        with database.transaction() as connection:
            return find_pull_request(connection, named.repository, named.issue_number)
    if database is None and not has_database():
        return None
    opened = open_database(database or "")
    try:
        return _look_up(named, opened)
    finally:
        opened.close()
