from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.pacing import Pacing
from formulacode_dagster.sources.github.transport.retry import TransportRetries
from sandbox.github import Limits, app
from sandbox.github.served_folder import ServedFolder
from sandbox.server import serving
from tests.support.clock import FakeClock
from tests.support.git_world import GITHUB, BareRepository
from tests.support.intake import window_ends

TOKEN = "ghp_" + "s3cret" * 6
FEBRUARY = Month.parse("2026-02")
CALM = Pacing(rest_points=10**6, graphql_points=10**6, code_searches=10**6, rest_seconds=10**6, graphql_seconds=10**6)

UNLIMITED = Limits(
    core=None,
    graphql=None,
    code_search=None,
    anonymous_core=None,
    concurrent=None,
    rest_points=None,
    graphql_points=None,
    graphql_seconds=None,
    all_seconds=None,
)
"""No primary and no secondary limit; what GitHub cuts short stays short."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def connect(clock: FakeClock) -> Callable[..., GitHubTransport]:
    """A client whose transport is *answer*, a function of the request."""

    def make(
        answer: Callable[[httpx.Request], httpx.Response], *, tokens: Sequence[str] = (TOKEN,), **more: Any
    ) -> GitHubTransport:
        more.setdefault("pacing", CALM)
        return GitHubTransport(
            "https://api.test",
            tokens,
            clock=clock,
            retries=TransportRetries(),
            transport=httpx.MockTransport(answer),
            **more,
        )

    return make


def repository(**known: Any) -> Repository:
    return Repository(
        **{
            "month": "2026-02",
            "id": 1,
            "node_id": "R_1",
            "full_name": "demo/project",
            "state": RepositoryState.ACTIVE,
            "config_path": "asv.conf.json",
        }
        | known
    )


Change = Callable[[str, dict[str, Any], dict[str, Any], int], Any]
"""(operation, variables, answer, how often the operation was called) → what is answered, None for the answer itself."""


class Altered(httpx.AsyncHTTPTransport):
    """Real HTTP, its GraphQL answers passed through *change*."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change
        self._calls: dict[str, int] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        (operation,) = re.findall(r"query (\w+)", asked["query"])
        self._calls[operation] = self._calls.get(operation, 0) + 1
        response = await super().handle_async_request(request)
        body = json.loads(await response.aread())
        changed = self._change(operation, asked["variables"], body, self._calls[operation])
        if isinstance(changed, httpx.Response):
            return changed
        return httpx.Response(response.status_code, json=body if changed is None else changed)


@dataclass
class World:
    """A folder of bare repositories with squashed pull requests, served as GitHub."""

    folder: Path
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    books: dict[str, Any] = field(default_factory=dict)
    cost: Cost = Cost()

    def merge(self, name: str, moments: Iterable[datetime], *, first: str = "last.txt", **facts: Any) -> None:
        """*name* with a pull request merged at each of *moments*, numbered from 1; *facts* go to the side file.

        The history begins with a file *first*.
        """
        made = BareRepository(self.folder / f"{name}.git")
        made.add("Begin", FEBRUARY.start - timedelta(days=9), {first: "{}"}, GITHUB)
        for number, at in enumerate(moments, 1):
            made.add(f"Change {number} (#{number})", at, {"last.txt": f"Change {number}"}, GITHUB)
        made.write()
        self.facts[name] = facts

    def rows(self, **renamed: str) -> list[Repository]:
        """Every repository as discovery would have it, under the old name where *renamed* maps `repo` to one."""
        (self.folder / "sandbox.json").write_text(json.dumps({"repositories": self.facts}))
        served = ServedFolder(self.folder).repositories()
        return [
            repository(
                id=stored.id, node_id=stored.node_id, full_name=renamed.get(stored.name.partition("/")[2], stored.name)
            )
            for stored in sorted(served, key=lambda stored: stored.name)
        ]

    @contextmanager
    def serve(self, **more: Any) -> Iterator[str]:
        (self.folder / "sandbox.json").write_text(json.dumps({"repositories": self.facts}))
        application = app(self.folder, **more)
        with serving(application) as url:
            yield url
        self.books = application.state.accounting.as_json()

    def taken_in(
        self, rows: Sequence[Repository], clock: FakeClock, *, change: Change | None = None, **more: Any
    ) -> list[MergedWindow | Exception]:
        """How the window of each of *rows* ends, all requested at once through the source."""

        async def inside(url: str) -> list[MergedWindow | Exception]:
            transport = Altered(change) if change else None
            client = GitHubTransport(
                url, list(more.get("tokens", [TOKEN])), clock=clock, pacing=CALM, transport=transport
            )
            async with GitHubSource(client, Stage.PULL_REQUESTS, "2026-02", "run") as source:
                ends = await window_ends(source, FEBRUARY, rows)
                self.cost = client.cost
                return ends

        with self.serve(**more) as url:
            return asyncio.run(inside(url))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "served")
