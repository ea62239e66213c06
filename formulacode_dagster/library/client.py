"""The client of scripts and notebooks: it reads whatever there is to one pull request or issue."""

from __future__ import annotations

from formulacode_dagster.github import reading

from .pull_request import PR, Source
from .reading_client import ReadingClient


class GitHubClient(ReadingClient):
    """Used as an async context manager: `async with GitHubClient(tokens=[...]) as client`.

    What it is made with, and what its methods raise, is as with `ReadingClient`.
    """

    async def get_pr(self, repository: str, number: int) -> PR:
        """The facts of a merged pull request, without its patch; ItemFailure `vanished` or `not_merged`."""
        facts = await reading.read_pull_request(self, repository, number)
        return PR(repository=facts.repository, issue_number=number, facts=facts, source=Source.GITHUB)
