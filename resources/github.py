"""GitHub's API."""

from __future__ import annotations

import asyncio
from typing import Any

import dagster as dg

from formulacode_dagster.github.client import GitHubClient
from formulacode_dagster.github.source import GitHubSource
from formulacode_dagster.items.progress import listener
from formulacode_dagster.models.intake import IntakeSource
from formulacode_dagster.models.items import Stage


class GitHubResource(dg.ConfigurableResource[Any]):
    """Hands out the async client."""

    url: str
    tokens: str

    def client(self, stage: Stage) -> GitHubClient:
        """A client, to be used as an async context manager; its waits show as progress of *stage*."""
        tokens = [token.strip() for token in self.tokens.split(",") if token.strip()]

        def on_wait(why: str, seconds: float) -> None:
            listener().note(stage, f"waiting {seconds:.0f} s: {why}")

        return GitHubClient(self.url, tokens, on_wait=on_wait)

    def source(self, stage: Stage, month: str, run_id: str) -> IntakeSource:
        """GitHub as a source of intake, its usage booked for *stage*, *month* and *run_id*."""
        return GitHubSource(self.client(stage), stage, month, run_id)

    def preflight(self) -> tuple[bool, str]:
        """Ask for the rate limit with every token; names the tokens that GitHub refuses, by position."""
        return asyncio.run(self._preflight())

    async def _preflight(self) -> tuple[bool, str]:
        count = len([token for token in self.tokens.split(",") if token.strip()])
        if not count:
            return False, f"{self.url}: GH_TOKENS is empty; code search and GraphQL need a token"
        async with self.client(Stage.REPOSITORIES) as client:
            for _ in range(count):
                await client.rest("/rate_limit")
            aside = [f"{state.name}: {state.set_aside}" for state in client.tokens() if state.set_aside]
        if aside:
            return False, f"{self.url}: {len(aside)} of {count} tokens set aside ({'; '.join(aside)})"
        return True, f"{self.url} answers, {count} tokens are good"
