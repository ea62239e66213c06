"""GitHub's API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import dagster as dg

from formulacode_dagster.github.source import GitHubSource
from formulacode_dagster.github.transport.client import GitHubClient
from formulacode_dagster.github.transport.rights import examine, verdict
from formulacode_dagster.items.progress import listener
from formulacode_dagster.models.intake import IntakeSource
from formulacode_dagster.models.items import Stage


class GitHubResource(dg.ConfigurableResource[Any]):
    """Hands out the async client, which shares its limits with all others under *home*."""

    url: str
    tokens: str
    home: str

    def client(self, stage: Stage) -> GitHubClient:
        """A client, to be used as an async context manager; its waits show as progress of *stage*."""

        def on_wait(reason: str, seconds: float) -> None:
            listener().waiting(stage, reason, seconds)

        def on_trouble(text: str) -> None:
            listener().warn(stage, text)

        return GitHubClient(self.url, self._tokens, home=Path(self.home), on_wait=on_wait, on_trouble=on_trouble)

    def source(self, stage: Stage, month: str, run_id: str) -> IntakeSource:
        """GitHub as a source of intake, its usage booked for *stage*, *month* and *run_id*."""
        return GitHubSource(self.client(stage), stage, month, run_id)

    def preflight(self) -> tuple[bool, str]:
        """Ask with every token; tells whose it is, what it has left, and what it cannot do.

        Raises OutsideSystemError when GitHub is dead, ConfigurationError when no token can do what intake needs.
        """
        if not self._tokens:
            return False, f"{self.url}: GH_TOKENS is empty; code search and GraphQL need a token"
        troubles: list[str] = []
        reports = asyncio.run(examine(self.url, self._tokens, home=Path(self.home), on_trouble=troubles.append))
        good, text = verdict(self.url, reports)
        return good and not troubles, "\n    ".join([text, *troubles])

    @property
    def _tokens(self) -> list[str]:
        return list(dict.fromkeys(token.strip() for token in self.tokens.split(",") if token.strip()))
