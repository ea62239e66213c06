"""The one way to GitHub: limits waited for, passing faults retried, every call accounted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import httpx

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.clock import Clock
from formulacode_dagster.operating.cancellation.tls import trusted
from formulacode_dagster.sources.github.queries import PROBE, RATE_LIMIT_PATH

from .accounting import Account, Ledger
from .addresses import PUBLIC_API, GitHubAddresses
from .answers import GraphQLAnswer, GraphQLError, Resource, RestAnswer
from .exchange import Exchange
from .limit_store import FileLimitStore, LimitStore
from .pacing import Pacing
from .permits import Permits
from .refusals import words_of
from .retry import Outcome, TransportRetries, Verdict, judge, judge_graphql
from .tokens import Lease, TokenPool, TokenState
from .waiting import OnWait, Waits

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""GitHub itself gives up on a query after 10 s; a large diff may take longer."""

JSON = "application/vnd.github+json"
API_VERSION = "2022-11-28"
MOST_REDIRECTS = 5


class GitHubTransport:
    """GraphQL and REST over a pool of tokens, used as an async context manager.

    With *home*, limits are shared with all other clients on this machine that use the same folder. *on_wait* receives
    the reason and seconds of waits, *on_trouble* problems of that folder, and tokens set aside.

    Every method raises OutsideSystemError when GitHub is dead, ConfigurationError when it demands a token that is not
    there, ItemFailure when it refuses this very request for good (kinds `vanished`, `forbidden`, `graphql`, `request`)
    or cannot answer it although it lives (`overloaded`).
    """

    def __init__(
        self,
        url: str = PUBLIC_API,
        tokens: Sequence[str] | TokenPool = (),
        *,
        home: Path | None = None,
        pacing: Pacing | None = None,
        on_wait: OnWait | None = None,
        on_trouble: Callable[[str], None] | None = None,
        retries: TransportRetries | None = None,
        clock: Clock | None = None,
        timeout: httpx.Timeout = TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.addresses = GitHubAddresses.of(url)
        self._url = self.addresses.rest
        self._clock = clock or Clock()
        self._pool = tokens if isinstance(tokens, TokenPool) else TokenPool(tokens)
        self._ledger = Ledger()
        self._started_at = datetime.now(tz=UTC)
        on_trouble = on_trouble or (lambda _text: None)
        self._store = (
            FileLimitStore(home / "github", self._url, self._clock, on_trouble) if home is not None else LimitStore()
        )
        waits = Waits(self._clock, self._ledger, on_wait or (lambda _reason, _seconds: None))
        self._http = httpx.AsyncClient(
            timeout=timeout,
            transport=transport,
            verify=trusted(),
            headers={"user-agent": "formulacode-dagster", "x-github-api-version": API_VERSION},
        )
        permits = Permits(self._pool, pacing or Pacing(), self._store, self._clock, waits)
        self._exchange = Exchange(
            url=self._url,
            http=self._http,
            pool=self._pool,
            permits=permits,
            retries=retries or TransportRetries(),
            ledger=self._ledger,
            waits=waits,
            clock=self._clock,
            lives=self._lives,
            on_trouble=on_trouble,
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()
        await self._http.aclose()

    @property
    def cost(self) -> Cost:
        """Everything called so far: points of the primary limits, requests, seconds on the wire, bytes."""
        return self._ledger.total.cost

    @property
    def totals(self) -> Account:
        """Everything called so far, by resource, with the seconds waited and the limits hit."""
        return self._ledger.total

    def account(self) -> AbstractContextManager[Account]:
        """Account separately for the calls inside a `with` block, by this task and those it starts."""
        return self._ledger.account()

    def usage(self, *, run_id: str, stage: Stage, month: str) -> tuple[ApiUsage, ...]:
        """Everything called so far, as rows to be stored: one for each resource."""
        return self._ledger.total.usage(run_id=run_id, stage=stage, month=month, started_at=self._started_at)

    def tokens(self) -> tuple[TokenState, ...]:
        """Return the state of each token."""
        return self._pool.states()

    async def learn_owner(self, position: int, login: str) -> None:
        """The token at *position* is the user *login*'s: tokens of one user share their limits."""
        await self._store.update(lambda limits: self._pool.learn_owner(limits, position, login))

    async def graphql(self, query: str, variables: Mapping[str, Any] | None = None) -> GraphQLAnswer:
        """Send the query; errors about parts are returned with the data, which is null there; all others raise."""
        body = {"query": query, "variables": dict(variables or {})}

        def build(lease: Lease) -> httpx.Request:
            return self._http.build_request("POST", self.addresses.graphql, json=body, headers=_headers(lease, JSON))

        answer = await self._exchange.ask(Resource.GRAPHQL, build, self._inspect_graphql, "GraphQL query")
        return answer.sound()

    async def rest(self, path: str, params: Mapping[str, str | int] | None = None, *, accept: str = JSON) -> RestAnswer:
        """GET *path*; redirects within this API are followed and reported in `moved_to`."""
        url = httpx.URL(self._url + path).copy_merge_params(params or {})
        moved_to = ""
        for _ in range(MOST_REDIRECTS):
            answer = await self._get(url, Resource.of_path(path), accept)
            if not answer.moved_to:
                return RestAnswer(answer.status, answer.data, answer.next_page, moved_to)
            url = httpx.URL(self._within(str(url), answer.moved_to))
            moved_to = str(url)
        raise ItemFailure(FailureKind.REQUEST, f"GitHub redirects GET {path} in circles")

    async def _get(self, url: httpx.URL, resource: Resource, accept: str) -> RestAnswer:
        def build(lease: Lease) -> httpx.Request:
            return self._http.build_request("GET", url, headers=_headers(lease, accept))

        def inspect(_lease: Lease, response: httpx.Response) -> tuple[Verdict, RestAnswer | None]:
            verdict = judge(response, words_of(response), self._clock.time())
            if verdict.outcome is Outcome.MOVED:
                return Verdict(Outcome.OK), RestAnswer(
                    response.status_code, None, moved_to=response.headers["location"]
                )
            if verdict.outcome is not Outcome.OK:
                return verdict, None
            data = response.json() if "json" in accept else response.text
            return verdict, RestAnswer(response.status_code, data, response.links.get("next", {}).get("url", ""))

        return await self._exchange.ask(resource, build, inspect, f"GET {url.path}")

    def _within(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        if urlsplit(target)[:2] != urlsplit(self._url)[:2]:
            raise ItemFailure(
                FailureKind.REQUEST, f"GitHub redirects {urlsplit(url).path} to another host, which is not followed"
            )
        return target

    def _inspect_graphql(self, _lease: Lease, response: httpx.Response) -> tuple[Verdict, GraphQLAnswer | None]:
        verdict = judge(response, words_of(response), self._clock.time())
        if verdict.outcome is not Outcome.OK:
            return verdict, None
        body = response.json()
        if not isinstance(body, dict):
            return Verdict(Outcome.PASSING, words="the answer is not an object"), None
        errors = tuple(GraphQLError.read(raw) for raw in body.get("errors") or ())
        data = body.get("data")
        verdict = judge_graphql(
            errors, has_data=isinstance(data, dict), headers=response.headers, now=self._clock.time()
        )
        partial = isinstance(data, dict) and all(error.path for error in errors)
        return verdict, GraphQLAnswer(data or {}, errors) if partial else None

    async def _lives(self, resource: Resource) -> bool:
        def build(lease: Lease) -> httpx.Request:
            headers = _headers(lease, JSON)
            if resource is Resource.GRAPHQL:
                question = {"query": PROBE, "variables": {}}
                return self._http.build_request("POST", self.addresses.graphql, json=question, headers=headers)
            return self._http.build_request("GET", self._url + RATE_LIMIT_PATH, headers=headers)

        def inspect(_lease: Lease, response: httpx.Response) -> tuple[Verdict, Any]:
            return judge(response, "", self._clock.time()), response.json()

        _, verdict, _ = await self._exchange.once(resource, build, inspect)
        return verdict.outcome is not Outcome.PASSING


def _headers(lease: Lease, accept: str) -> dict[str, str]:
    headers = {"accept": accept}
    if lease.authorization:
        headers["authorization"] = lease.authorization
    return headers
