"""The one way to GitHub: limits waited for, passing faults retried, every call accounted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.items import Cost

from .accounting import Account, Ledger
from .answers import GraphQLAnswer, GraphQLError, Resource, RestAnswer
from .clock import Clock, SystemClock
from .pacing import Pacer, Pacing
from .queries import PROBE, RATE_LIMIT_PATH
from .refusals import refusal, token_needed, words_of
from .retry import PASSING_ERRORS, Outcome, Retries, Verdict, judge, judge_graphql, until_reset
from .tokens import Lease, TokenPool, TokenState

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""GitHub itself gives up on a query after 10 s; a large diff may take longer."""

JSON = "application/vnd.github+json"
API_VERSION = "2022-11-28"
MOST_REDIRECTS = 5

Answer = TypeVar("Answer")


class GitHubClient:
    """GraphQL and REST over a pool of tokens.

    Every method raises OutsideSystemError when GitHub is dead, ConfigurationError when it demands a token that is not
    there, ItemFailure when it refuses this very request for good (kinds `vanished`, `forbidden`, `graphql`, `request`)
    or cannot answer it although it lives (`overloaded`).
    """

    def __init__(
        self,
        url: str,
        tokens: Sequence[str],
        *,
        pacing: Pacing | None = None,
        on_wait: Callable[[str, float], None] | None = None,
        retries: Retries | None = None,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        # GitHub Enterprise Server has REST under /api/v3 and GraphQL beside it.
        self._graphql_url = self._url.removesuffix("/v3") + "/graphql"
        self._clock = clock or SystemClock()
        self._pool = TokenPool(tokens, self._clock)
        self._on_wait = on_wait or (lambda _reason, _seconds: None)
        self._pacer = Pacer(pacing or Pacing(), self._clock, self._waiting)
        self._retries = retries or Retries()
        self._ledger = Ledger()
        self._http = httpx.AsyncClient(
            timeout=TIMEOUT,
            transport=transport,
            headers={"user-agent": "formulacode-dagster", "x-github-api-version": API_VERSION},
        )

    async def __aenter__(self) -> GitHubClient:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    @property
    def cost(self) -> Cost:
        """Everything called so far: points of the primary limits, requests, seconds on the wire, bytes."""
        return self._ledger.total.cost

    @property
    def totals(self) -> Account:
        """The cost, with the seconds waited and the limits hit."""
        return self._ledger.total

    def account(self) -> AbstractContextManager[Account]:
        """Account apart for what is called inside a `with` block, by this task and those it starts."""
        return self._ledger.account()

    def tokens(self) -> tuple[TokenState, ...]:
        """What is known of each token."""
        return self._pool.states()

    async def graphql(self, query: str, variables: Mapping[str, Any] | None = None) -> GraphQLAnswer:
        """Ask; errors that concern only parts come back beside the data, all others raise."""
        body = {"query": query, "variables": dict(variables or {})}

        def build(lease: Lease) -> httpx.Request:
            return self._http.build_request("POST", self._graphql_url, json=body, headers=_headers(lease, JSON))

        return await self._exchange(Resource.GRAPHQL, build, self._inspect_graphql, "GraphQL query")

    async def rest(self, path: str, params: Mapping[str, str | int] | None = None, *, accept: str = JSON) -> RestAnswer:
        """GET *path*; redirects within this API are followed, and told in `moved_to`."""
        url = httpx.URL(self._url + path).copy_merge_params(params or {})
        moved_to = ""
        for _ in range(MOST_REDIRECTS):
            answer = await self._get(url, Resource.of_path(path), accept)
            if not answer.moved_to:
                return RestAnswer(answer.status, answer.data, answer.next_page, moved_to)
            url = httpx.URL(self._within(str(url), answer.moved_to))
            moved_to = str(url)
        raise ItemFailure("request", f"GitHub redirects GET {path} in circles")

    async def _get(self, url: httpx.URL, resource: Resource, accept: str) -> RestAnswer:
        def build(lease: Lease) -> httpx.Request:
            return self._http.build_request("GET", url, headers=_headers(lease, accept))

        def inspect(response: httpx.Response) -> tuple[Verdict, RestAnswer | None]:
            verdict = judge(response, words_of(response), self._clock.time())
            if verdict.outcome is Outcome.MOVED:
                return Verdict(Outcome.OK), RestAnswer(
                    response.status_code, None, moved_to=response.headers["location"]
                )
            if verdict.outcome is not Outcome.OK:
                return verdict, None
            data = response.json() if "json" in accept else response.text
            following = response.links.get("next", {}).get("url", "")
            return verdict, RestAnswer(response.status_code, data, following)

        return await self._exchange(resource, build, inspect, f"GET {url.path}")

    def _within(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        if urlsplit(target)[:2] != urlsplit(self._url)[:2]:
            raise ItemFailure(
                "request", f"GitHub redirects {urlsplit(url).path} to another host, which is not followed"
            )
        return target

    def _inspect_graphql(self, response: httpx.Response) -> tuple[Verdict, GraphQLAnswer | None]:
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
        if verdict.outcome is not Outcome.OK:
            return verdict, None
        return verdict, GraphQLAnswer(data or {}, errors)

    async def _exchange(
        self,
        resource: Resource,
        build: Callable[[Lease], httpx.Request],
        inspect: Callable[[httpx.Response], tuple[Verdict, Answer | None]],
        what: str,
    ) -> Answer:
        failures = limits = 0
        while True:
            lease = await self._lease(resource)
            verdict, answer = await self._once(resource, lease, build(lease), inspect)
            match verdict.outcome:
                case Outcome.OK if answer is not None:
                    return answer
                case Outcome.UNAUTHORIZED:
                    self._refused(lease, what, verdict)
                case Outcome.PRIMARY_LIMIT | Outcome.SECONDARY_LIMIT:
                    limits += 1
                    self._limited(lease, resource, verdict, limits, what)
                case Outcome.PASSING:
                    failures += 1
                    if failures >= self._retries.attempts:
                        raise await self._given_up(resource, what, verdict)
                    await self._wait(f"GitHub failed to answer: {verdict.words}", self._retries.passing(failures))
                case _:
                    raise refusal(what, verdict.words)

    async def _lease(self, resource: Resource) -> Lease:
        while True:
            chosen = self._pool.lease(resource)
            if isinstance(chosen, Lease):
                return chosen
            await self._wait(f"GitHub's limit of {resource} requests", chosen)

    async def _once(
        self,
        resource: Resource,
        lease: Lease,
        request: httpx.Request,
        inspect: Callable[[httpx.Response], tuple[Verdict, Answer | None]],
    ) -> tuple[Verdict, Answer | None]:
        async with self._pacer.permit(resource):
            started = self._clock.time()
            response: httpx.Response | None = None
            try:
                response = await self._http.send(request)
                verdict, answer = inspect(response)
            except PASSING_ERRORS as error:
                verdict, answer = Verdict(Outcome.PASSING, words=f"{type(error).__name__} {error}".strip()), None
            except ValueError:
                verdict, answer = Verdict(Outcome.PASSING, words="the body broke off, or is not JSON"), None
        points = _points(resource, response, answer)
        for account in self._ledger.current():
            account.add(
                points=points,
                requests=1,
                seconds=max(0.0, self._clock.time() - started),
                size=len(response.content) if response is not None else 0,
            )
        if response is not None:
            self._learn(lease, resource, response.headers)
        return verdict, answer

    def _learn(self, lease: Lease, resource: Resource, headers: Mapping[str, str]) -> None:
        now = self._clock.time()
        remaining, seconds = headers.get("x-ratelimit-remaining", ""), until_reset(headers, now)
        counted = headers.get("x-ratelimit-resource", resource)
        if remaining.isdigit() and seconds is not None and counted in set(Resource):
            self._pool.learn(lease, Resource(counted), remaining=int(remaining), reset=now + seconds)

    def _refused(self, lease: Lease, what: str, verdict: Verdict) -> None:
        if self._pool.anonymous:
            raise token_needed(what, verdict.words)
        self._pool.set_aside(lease, verdict.words or "refused with 401")

    def _limited(self, lease: Lease, resource: Resource, verdict: Verdict, hits: int, what: str) -> None:
        for account in self._ledger.current():
            account.limit_hits += 1
        # Without a token these budgets are zero: waiting for their reset would be waiting for ever.
        if self._pool.anonymous and resource in (Resource.GRAPHQL, Resource.CODE_SEARCH):
            raise token_needed(what, verdict.words)
        if hits > self._retries.limit_waits:
            raise OutsideSystemError(
                "github",
                f"{what} was refused {hits} times for limits",
                why=verdict.words,
                remedy="Lower the pacing, or find out what else uses these tokens",
            )
        wait = self._retries.limited(hits) if verdict.wait is None else verdict.wait
        if verdict.outcome is Outcome.PRIMARY_LIMIT:
            # The reset is in whole seconds: asking in the same second would be refused again.
            self._pool.exhaust(lease, resource, seconds=max(wait, 1.0))
        else:
            self._pool.block(lease, seconds=wait)

    async def _wait(self, reason: str, seconds: float) -> None:
        self._waiting(reason, seconds)
        await self._clock.sleep(max(0.0, seconds))

    def _waiting(self, reason: str, seconds: float) -> None:
        for account in self._ledger.current():
            account.waited_seconds += max(0.0, seconds)
        self._on_wait(reason, seconds)

    async def _given_up(self, resource: Resource, what: str, verdict: Verdict) -> Exception:
        """Whether it is GitHub that is dead or this request that is too much for it: a trivial one tells."""
        attempts = f"{what} failed {self._retries.attempts} times"
        if await self._lives(resource):
            return ItemFailure("overloaded", f"GitHub cannot answer: {attempts}", why=verdict.words, remedy="Try again")
        return OutsideSystemError(
            "github",
            f"{self._url} does not answer: {attempts}",
            why=verdict.words,
            remedy="See whether GitHub is up and GITHUB_API_URL is right; the next run goes on from here",
        )

    async def _lives(self, resource: Resource) -> bool:
        lease = self._pool.lease(resource)
        if not isinstance(lease, Lease):
            return True
        if resource is Resource.GRAPHQL:
            question = {"query": PROBE, "variables": {}}
            request = self._http.build_request("POST", self._graphql_url, json=question, headers=_headers(lease, JSON))
        else:
            request = self._http.build_request("GET", self._url + RATE_LIMIT_PATH, headers=_headers(lease, JSON))
        verdict, _ = await self._once(resource, lease, request, lambda answer: (judge(answer, "", 0), answer.json()))
        return verdict.outcome is not Outcome.PASSING


def _headers(lease: Lease, accept: str) -> dict[str, str]:
    headers = {"accept": accept}
    if lease.authorization:
        headers["authorization"] = lease.authorization
    return headers


def _points(resource: Resource, response: httpx.Response | None, answer: object) -> int:
    if response is None or response.status_code >= 500 or response.status_code == 304:
        return 0
    if resource is Resource.GRAPHQL and isinstance(answer, GraphQLAnswer):
        return int((answer.data.get("rateLimit") or {}).get("cost", 1))
    return 1
