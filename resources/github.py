"""GitHub's API."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.intake import IntakeSource
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner.progress import listener
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.rights import examine, verdict
from formulacode_dagster.sources.offline.candidates import read_candidates

from .base import SettingsResource, setting

CODE_SEARCH, EARLIER = "code_search", "earlier"
"""Sources of FC_DISCOVERY that are no file."""


class GitHubResource(SettingsResource):
    """Hands out the async client, which shares its limits with all others under FC_HOME. Its tokens are GH_TOKENS."""

    github_api_url: str | None = setting("github_api_url")
    home: str | None = setting("home")

    def client(self, stage: Stage) -> GitHubTransport:
        """A client, to be used as an async context manager; its waits show as progress of *stage*."""

        def on_wait(reason: str, seconds: float) -> None:
            listener().waiting(stage, reason, seconds)

        def on_trouble(text: str) -> None:
            listener().warn(stage, text)

        settings = self.settings
        return GitHubTransport(
            settings.github_api_url,
            settings.github_tokens,
            home=settings.home,
            on_wait=on_wait,
            on_trouble=on_trouble,
        )

    def source(self, stage: Stage, month: str, run_id: str) -> IntakeSource:
        """GitHub as a source of intake, its usage booked for *stage*, *month* and *run_id*."""
        sources = self.settings.discovery
        return GitHubSource(
            self.client(stage),
            stage,
            month,
            run_id,
            candidates=self.candidates() if stage is Stage.REPOSITORIES else {},
            search_code=CODE_SEARCH in sources,
        )

    def candidates(self) -> Mapping[str, str]:
        """Return the repositories that files of FC_DISCOVERY name, with the paths of their configurations.

        Raises ConfigurationError for a file that cannot be read, and without any source.
        """
        if not self.settings.discovery:
            raise ConfigurationError("FC_DISCOVERY names no source", remedy="Name code_search, earlier, or a file")
        files = [name for name in self.settings.discovery if name not in (CODE_SEARCH, EARLIER)]
        return {name: path for file in files for name, path in read_candidates(Path(file).expanduser()).items()}

    @property
    def as_before(self) -> bool:
        """True if what an earlier month tracked is looked up, too."""
        return EARLIER in self.settings.discovery

    def preflight(self) -> tuple[bool, str]:
        """Check every token; report its owner, remaining quota, and missing permissions.

        Raises OutsideSystemError when GitHub is dead, ConfigurationError if no token suffices for intake.
        """
        url, tokens = self.settings.github_api_url, self.settings.github_tokens
        if not tokens:
            return False, f"{url}: GH_TOKENS is empty; code search and GraphQL need a token"
        troubles: list[str] = []
        reports = asyncio.run(examine(url, tokens, home=self.settings.home, on_trouble=troubles.append))
        good, text = verdict(url, reports)
        return good and not troubles, "\n    ".join([text, *troubles])
