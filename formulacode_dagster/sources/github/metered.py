"""A client as a stage has it: opened, closed, and its usage booked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.sources.github.transport.client import GitHubTransport


@dataclass
class MeteredClient:
    """Asks GitHub over *client*, which it opens and closes; usage is booked for *stage*, *month* and *run_id*."""

    client: GitHubTransport
    stage: Stage
    month: str
    run_id: str

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.__aexit__()

    def usage(self) -> tuple[ApiUsage, ...]:
        """Return the requests so far, by GitHub's resource."""
        return self.client.usage(run_id=self.run_id, stage=self.stage, month=self.month)
