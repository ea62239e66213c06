"""A client as a stage has it: opened, closed, and its usage booked."""

from __future__ import annotations

from typing import Self

from formulacode_dagster.github.transport.client import GitHubClient
from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Stage


class MeteredClient:
    """Asks GitHub over *client*, which it opens and closes; usage is booked for *stage*, *month* and *run_id*."""

    def __init__(self, client: GitHubClient, stage: Stage, month: str, run_id: str) -> None:
        self._client = client
        self._stage = stage
        self._month = month
        self._run_id = run_id

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    def usage(self) -> tuple[ApiUsage, ...]:
        """What was asked so far, by GitHub's resource."""
        return self._client.usage(run_id=self._run_id, stage=self._stage, month=self._month)
