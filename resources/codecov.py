"""Codecov's API."""

from __future__ import annotations

from formulacode_dagster.releasing.commit_reports.codecov import CodecovClient

from .base import SettingsResource, setting


class CodecovResource(SettingsResource):
    """Hands out the async client. Its token is CODECOV_TOKEN."""

    codecov_url: str | None = setting("codecov_url")

    def client(self) -> CodecovClient:
        """A client, to be used as an async context manager."""
        return CodecovClient.at(self.settings.codecov_url, self.settings.codecov_token.get_secret_value())
