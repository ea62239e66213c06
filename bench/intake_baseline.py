"""The predecessor's method of intake, implemented as well as its design allows.

It pages each repository's pull requests by date of creation, newest first; stops at the first page created entirely
before the window; takes those merged within; and requests one diff each from REST. It retries failures and waits when
GitHub says so, so that it terminates. But a missing response counts as an empty one, redirects are not followed, and
nothing is throttled.

It would take hours: so it does not sleep while GitHub refuses it, but has the sandbox's clock put forward by as long.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

WORKERS = 32
TRIES = 3
PAGE = 100
CLOCKS = 0.01
"""Ours and the sandbox's may differ by so much."""
JSON, DIFF = "application/vnd.github+json", "application/vnd.github.diff"


@dataclass
class Taken:
    """Its results, and its waiting time."""

    pulls: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    diffs_missing: int = 0
    waited: float = 0.0


class Baseline:
    """One month's intake of *repositories* by name, at the API *url*. Times are GitHub's text form."""

    def __init__(self, url: str, token: str, since: str, until: str) -> None:
        headers = {"authorization": f"Bearer {token}", "accept": JSON}
        limits = httpx.Limits(max_connections=WORKERS)
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=30.0, limits=limits)
        self._since, self._until = since, until
        self._free = asyncio.Semaphore(WORKERS)
        self._resting = asyncio.Lock()
        self._rest_until = self._ahead = 0.0
        self.taken = Taken()

    async def take_in(self, repositories: list[str]) -> Taken:
        """All of it."""
        async with self._http:
            await asyncio.gather(*map(self._repository, repositories))
        return self.taken

    async def _repository(self, name: str) -> None:
        found: dict[int, dict[str, Any]] = {}
        page = 1
        while True:
            query = {"state": "closed", "sort": "created", "direction": "desc", "per_page": PAGE, "page": page}
            answer = await self._ask(f"/repos/{name}/pulls", query)
            listed = answer.json() if answer is not None else []
            found |= {pull["number"]: pull for pull in listed if self._since <= (pull["merged_at"] or "") < self._until}
            if len(listed) < PAGE or all(pull["created_at"] < self._since for pull in listed):
                break
            page += 1
        self.taken.pulls[name] = {number: _facts(pull) for number, pull in found.items()}
        await asyncio.gather(*(self._diff(name, number) for number in found))

    async def _diff(self, name: str, number: int) -> None:
        answer = await self._ask(f"/repos/{name}/pulls/{number}", {}, DIFF)
        self.taken.diffs_missing += answer is None or not answer.text

    async def _ask(self, path: str, query: dict[str, Any], accept: str = JSON) -> httpx.Response | None:
        """Return the response, or None for any other outcome."""
        failures = 0
        while failures < TRIES:
            async with self._free:
                await self._rested()
                try:
                    answer = await self._http.get(path, params=query, headers={"accept": accept})
                    if answer.status_code in (403, 429):
                        self._limited(answer)
                        continue
                    if answer.status_code == 200:
                        if accept == JSON:
                            answer.json()
                        return answer
                    if answer.status_code < 500:
                        return None
                except (httpx.TransportError, ValueError):
                    pass
            failures += 1
            await asyncio.sleep(0.1 * 2**failures)
        return None

    def _limited(self, answer: httpx.Response) -> None:
        after = answer.headers.get("retry-after")
        until = self._now() + float(after) if after else float(answer.headers["x-ratelimit-reset"])
        self._rest_until = max(self._rest_until, until)

    async def _rested(self) -> None:
        # All workers use one token: when it is refused, all wait.
        async with self._resting:
            left = self._rest_until - self._now()
            if left > 0:
                self.taken.waited += left
                answer = await self._http.post("/_sandbox/clock", json={"seconds": left + CLOCKS})
                self._ahead = answer.json()["now"] - time.time()

    def _now(self) -> float:
        return time.time() + self._ahead


def _facts(pull: dict[str, Any]) -> dict[str, Any]:
    merged = datetime.fromisoformat(pull["merged_at"])
    return {"title": pull["title"], "merged_at": int(merged.timestamp())}
