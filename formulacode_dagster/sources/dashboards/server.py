"""A site's server, asked as one would like to be: by name, at a pace, conditionally, and again only after a wait."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode
from urllib.robotparser import RobotFileParser

import httpx

from formulacode_dagster.operating.cancellation.backoff import Backoff, retry_after
from formulacode_dagster.operating.cancellation.clock import SYSTEM_CLOCK, Clock
from formulacode_dagster.operating.cancellation.loops import in_thread
from formulacode_dagster.operating.cancellation.tls import trusted

from .faults import DashboardError, Fault, FaultKind
from .folder import LARGEST_FILE

AGENT = "formulacode-dagster"
TIMEOUT = httpx.Timeout(30.0, connect=10.0)
ATTEMPTS = 5
BACKOFF = Backoff(first_seconds=1.0, longest_seconds=60.0, jitter=(0.5, 1.0))
LONGEST_WAIT = 600.0
"""Longest accepted wait in seconds; files with longer waits are reported and left for another run."""
PACE = 0.02
"""Seconds between two requests, unless `robots.txt` asks for more."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Answer:
    """Answer of the server: 200 with content, 304, or not found (404 and 410)."""

    status: int
    content: bytes
    etag: str
    modified: str


class Server:
    """The files at *url*, as an async context manager."""

    def __init__(
        self,
        url: str,
        *,
        pace: float = PACE,
        token: str = "",
        clock: Clock = SYSTEM_CLOCK,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.partition("#")[0].rstrip("/")
        self.requests = 0
        self._pace = pace
        self._clock = clock
        self._next = 0.0
        self._robots: RobotFileParser | None = None
        self._http = httpx.AsyncClient(
            timeout=TIMEOUT,
            transport=transport,
            verify=trusted(),
            follow_redirects=True,
            # of redirected requests too
            event_hooks={"request": [self._stay_outside]},
            headers={"user-agent": AGENT, **({"authorization": f"Bearer {token}"} if token else {})},
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def read_robots(self) -> None:
        """Keep to the server's `robots.txt` from now on; one without asks for nothing.

        Raises DashboardError if it cannot be read: then its rules are unknown (RFC 9309, 2.3.1.4).
        """
        address = str(httpx.URL(self.url).join("/robots.txt"))
        answer = await self._ask("robots.txt", address, {})
        if isinstance(answer, Fault):
            raise DashboardError(self.url, answer, "Try again later")
        robots = RobotFileParser()
        robots.parse(answer.content.decode(errors="replace").splitlines() if answer.status == 200 else [])
        self._robots = robots
        self._pace = max(self._pace, float(robots.crawl_delay(AGENT) or 0.0))

    async def get(
        self, path: str, etag: str = "", modified: str = "", query: Mapping[str, str] | None = None
    ) -> Answer | Fault:
        """The file at *path*, unless it is still the one with this *etag*, or of this date; or why it cannot be had."""
        # the characters that asv's own page leaves unescaped in a path, and slashes
        address = f"{self.url}/" + quote(path, safe="/!~*'()-_.") + (f"?{urlencode(query)}" if query else "")
        if self._robots is not None and not self._robots.can_fetch(AGENT, address):
            return Fault(path, FaultKind.FORBIDDEN, "robots.txt")
        conditions = {"if-none-match": etag} if etag else {"if-modified-since": modified} if modified else {}
        return await self._ask(path, address, conditions)

    async def _ask(self, path: str, address: str, headers: dict[str, str]) -> Answer | Fault:
        detail = ""
        for attempt in range(1, ATTEMPTS + 1):
            await self._keep_pace()
            wait = None
            try:
                answer = await self._answer(address, headers)
            except (httpx.TransportError, httpx.DecodingError) as error:
                detail = f"{type(error).__name__} {error}".strip()
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                return Fault(path, FaultKind.NOT_FETCHED, f"{type(error).__name__} {error}".strip())
            else:
                if answer is None:
                    return Fault(path, FaultKind.TOO_LARGE, f"more than {LARGEST_FILE:,} bytes")
                response, content = answer
                if response.status_code in (200, 304, 404, 410):
                    told = response.headers
                    return Answer(response.status_code, content, told.get("etag", ""), told.get("last-modified", ""))
                detail = f"HTTP {response.status_code}"
                if response.status_code not in _PASSING:
                    return Fault(path, FaultKind.NOT_FETCHED, detail)
                wait = retry_after(response.headers, self._clock.time())
            wait = BACKOFF.seconds(attempt) if wait is None else wait
            if wait > LONGEST_WAIT:
                return Fault(path, FaultKind.NOT_FETCHED, f"{detail}, and to wait for {wait:.0f} s")
            # a requested wait applies to all requests
            self._next = max(self._next, self._clock.time() + wait)
        return Fault(path, FaultKind.NOT_FETCHED, f"{detail}, {ATTEMPTS} times")

    async def _answer(self, address: str, headers: dict[str, str]) -> tuple[httpx.Response, bytes] | None:
        """The answer and its body; None when that is larger than anything a site has."""
        self.requests += 1
        async with self._http.stream("GET", address, headers=headers) as response:
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > LARGEST_FILE:
                    return None
            return response, bytes(content)

    async def _stay_outside(self, request: httpx.Request) -> None:
        """Refuse a redirect into this machine or its network; the host that the caller named may be there."""
        host = request.url.host
        if host == httpx.URL(self.url).host:
            return
        try:
            found = await in_thread(socket.getaddrinfo, host, None)
        except OSError:
            # whoever connects, perhaps a proxy, finds no address either
            return
        if inside := [address for *_, (address, *_) in found if not _is_public(str(address))]:
            raise httpx.RequestError(f"redirected to {host}, which is {inside[0]}", request=request)

    async def _keep_pace(self) -> None:
        now = self._clock.time()
        at = max(now, self._next)
        self._next = at + self._pace
        if at > now:
            await self._clock.sleep(at - now)


def _is_public(address: str) -> bool:
    parsed = ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_global
