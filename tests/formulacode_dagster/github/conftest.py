from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from formulacode_dagster.github.client import GitHubClient
from formulacode_dagster.github.pacing import Pacing
from formulacode_dagster.github.retry import Retries
from formulacode_dagster.models.repository import Repository, RepositoryState

TOKEN = "ghp_" + "s3cret" * 6
NOW = datetime(2026, 3, 1, tzinfo=UTC).timestamp()


class FakeClock:
    """Time that passes only by being slept away."""

    def __init__(self) -> None:
        self.now = NOW
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def connect(clock) -> Callable[..., GitHubClient]:
    """A client whose transport is *answer*, a function of the request."""

    def make(answer: Callable[[httpx.Request], httpx.Response], *, tokens=(TOKEN,), **more: Any) -> GitHubClient:
        more.setdefault("pacing", Pacing(rest_points=10**6, graphql_points=10**6, searches=10**6, code_searches=10**6))
        return GitHubClient(
            "https://api.test", tokens, clock=clock, retries=Retries(), transport=httpx.MockTransport(answer), **more
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


def connection(nodes: list[Any], start: int, first: int) -> dict[str, Any]:
    end = start + first
    return {
        "totalCount": len(nodes),
        "pageInfo": {"hasNextPage": end < len(nodes), "endCursor": str(end)},
        "nodes": nodes[start:end],
    }


class FakeGitHub:
    """Search over a list of pull requests, with its cap; faults are put in front of it by the tests."""

    def __init__(self, pull_requests: list[dict[str, Any]], *, name: str = "demo/project") -> None:
        self.pull_requests = pull_requests
        self.name = name
        self.searches: list[str] = []
        self.labels = ["performance"]
        self.issues: list[dict[str, Any]] = []
        self.edits: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        operation = re.search(r"query (\w+)", body["query"])[1]
        data = getattr(self, operation)(body["variables"])
        return httpx.Response(200, json={"data": data | {"rateLimit": {"cost": 2, "remaining": 100, "resetAt": "x"}}})

    def Probe(self, _: dict[str, Any]) -> dict[str, Any]:
        return {}

    def MergedPullRequests(self, variables: dict[str, Any]) -> dict[str, Any]:
        self.searches.append(variables["search"])
        name, start, end = re.fullmatch(
            r"repo:(\S+) is:pr is:merged merged:(\S+)\.\.(\S+)", variables["search"]
        ).groups()
        low, high = (datetime.fromisoformat(text) for text in (start, end))
        found = (
            [pr for pr in self.pull_requests if low <= datetime.fromisoformat(pr["mergedAt"]) <= high]
            if name == self.name
            else []
        )
        page = connection(found[:1000], int(variables["after"] or 0), variables["first"])
        page.pop("totalCount")
        return {
            "repository": {"id": "R_1", "databaseId": 1, "nameWithOwner": self.name},
            "search": page | {"issueCount": len(found)},
        }

    def PullRequestLabels(self, variables: dict[str, Any]) -> dict[str, Any]:
        nodes = [{"name": name} for name in self.labels]
        return {"node": {"labels": connection(nodes, int(variables["after"] or 0), 100)}}

    def PullRequestClosingIssues(self, variables: dict[str, Any]) -> dict[str, Any]:
        return {"node": {"closingIssuesReferences": connection(self.issues, int(variables["after"] or 0), 100)}}

    def IssueEdits(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"node": {"userContentEdits": connection(self.edits, 0, 100)}}

    def pull_request(self, number: int, merged_at: datetime) -> dict[str, Any]:
        return {
            "id": f"PR_{number}",
            "number": number,
            "title": f"Change {number}",
            "body": "",
            "author": None,
            "createdAt": "2025-12-01T00:00:00Z",
            "mergedAt": merged_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "baseRefName": "main",
            "headRefOid": "1" * 40,
            "mergeCommit": {"oid": "2" * 40},
            "changedFiles": 1,
            "commits": {"totalCount": 1},
            "repository": {"databaseId": 1, "nameWithOwner": self.name},
            "labels": connection([{"name": name} for name in self.labels], 0, 30),
            "closingIssuesReferences": connection(self.issues, 0, 10),
        }

    @classmethod
    def spread(cls, count: int, *, seconds: int = 600) -> FakeGitHub:
        """*count* pull requests from the first second of February on, out of order."""
        fake = cls([])
        start = datetime(2026, 2, 1, tzinfo=UTC)
        fake.pull_requests = [
            fake.pull_request(number, start + timedelta(seconds=seconds * (number - 1)))
            for number in range(count, 0, -1)
        ]
        return fake
