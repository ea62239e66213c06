"""One question to GitHub, until it is answered or refused for good: permits, retries, limits, the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import httpx

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.clock import Clock

from .accounting import Ledger
from .answers import GraphQLAnswer, Resource
from .permits import Permit, Permits
from .refusals import refusal, token_needed
from .retry import OVERRUNS, PASSING_ERRORS, Outcome, TransportRetries, Verdict, until_reset
from .tokens import Lease, NoOtherTokenError, TokenPool
from .waiting import Waits

Answer = TypeVar("Answer")
Build = Callable[[Lease], httpx.Request]
Inspect = Callable[[Lease, httpx.Response], tuple[Verdict, Answer | None]]


@dataclass(frozen=True)
class Exchange:
    """Sends requests for a client; errors as in `GitHubClient`."""

    url: str
    http: httpx.AsyncClient
    pool: TokenPool
    permits: Permits
    retries: TransportRetries
    ledger: Ledger
    waits: Waits
    clock: Clock
    lives: Callable[[Resource], Awaitable[bool]]
    """Sends a trivial request to a resource, to distinguish a dead GitHub from an overly heavy query."""
    on_trouble: Callable[[str], None]
    """Hears of each token that is set aside."""

    async def ask(self, resource: Resource, build: Build, inspect: Inspect[Answer], what: str) -> Answer:
        """Return the answer that *inspect* extracts from the request that *build* makes; *what* describes it in
        messages.
        """
        failures = limits = overruns = 0
        refused_to: dict[int, Verdict] = {}
        underscoped: set[int] = set()
        partial: Answer | None = None
        # others may set tokens aside, also during the wait for a permit
        while not refused_to or self.pool.has_other(resource, refused_to):
            try:
                permit, verdict, answer = await self.once(resource, build, inspect, without=refused_to, limits=limits)
            except NoOtherTokenError:
                break
            match verdict.outcome:
                case Outcome.OK if answer is not None:
                    for position in underscoped:
                        words = refused_to[position].words
                        # that this one was answered shows that it was for lack of rights
                        if self.pool.set_aside_for(position, resource, words):
                            name = self.pool.states()[position].name
                            self.on_trouble(f"{name} is set aside for {resource}: {words}")
                    return answer
                case Outcome.UNAUTHORIZED:
                    self._unauthorized(permit.lease, what, verdict)
                case Outcome.UNDERSCOPED | Outcome.FORBIDDEN:
                    refused_to[permit.lease.position] = verdict
                    if verdict.outcome is Outcome.UNDERSCOPED:
                        underscoped.add(permit.lease.position)
                    if answer is not None and (partial is None or _faults(answer) < _faults(partial)):
                        partial = answer
                case Outcome.TOO_HEAVY:
                    raise _too_heavy(what, verdict)
                case Outcome.PRIMARY_LIMIT | Outcome.SECONDARY_LIMIT:
                    limits += 1
                    self._check_limits(resource, limits, what, verdict)
                case Outcome.PASSING:
                    failures += 1
                    overruns += verdict.has_overrun
                    if overruns >= OVERRUNS and resource is Resource.GRAPHQL:
                        raise _too_heavy(what, verdict)
                    if failures >= self.retries.attempts:
                        raise await self._given_up(resource, what, verdict)
                    for tally in self.ledger.tallies(resource):
                        tally.retries += 1
                    wait = max(self.retries.passing.seconds(failures), verdict.wait or 0.0)
                    await self.waits.whole(resource, f"GitHub failed to answer ({verdict.words}), trying again", wait)
                case _:
                    raise refusal(what, verdict)
        if partial is not None:
            return partial
        raise refusal(what, [*refused_to.values()][-1])

    async def once(
        self,
        resource: Resource,
        build: Build,
        inspect: Inspect[Answer],
        *,
        without: Collection[int] = (),
        limits: int = 0,
    ) -> tuple[Permit, Verdict, Answer | None]:
        """One try, after this many *limits*: the token, and the outcome."""
        async with self.permits.hold(resource, without=without) as permit:
            started = self.clock.time()
            response: httpx.Response | None = None
            answer: Answer | None = None
            try:
                response = await self.http.send(build(permit.lease))
                verdict, answer = inspect(permit.lease, response)
            except PASSING_ERRORS as error:
                verdict = Verdict(Outcome.PASSING, words=f"{type(error).__name__} {error}".strip())
            except ValueError:
                verdict = Verdict(Outcome.PASSING, words="the body broke off, or is not JSON")
            seconds = max(0.0, self.clock.time() - started)
            verdict = replace(verdict, seconds=seconds)
            if isinstance(answer, GraphQLAnswer):
                answer = replace(answer, seconds=seconds)
            limited = verdict.outcome in (Outcome.PRIMARY_LIMIT, Outcome.SECONDARY_LIMIT)
            for tally in self.ledger.tallies(resource):
                tally.requests += 1
                tally.points += 0 if limited else _points(resource, response, answer)
                tally.limit_hits += limited
                tally.seconds += seconds
                tally.bytes += len(response.content) if response is not None else 0
            if response is not None:
                _learn(permit, resource, response.headers, self.clock.time())
            if verdict.has_overrun:
                permit.overrun()
            if limited:
                wait = self.retries.limited.seconds(limits + 1) if verdict.wait is None else verdict.wait
                if verdict.outcome is Outcome.PRIMARY_LIMIT:
                    # the reset is in whole seconds: asking in the same second would be refused again
                    permit.exhaust(max(wait, 1.0))
                else:
                    permit.block(wait)
        return permit, verdict, answer

    def _unauthorized(self, lease: Lease, what: str, verdict: Verdict) -> None:
        if self.pool.anonymous:
            raise token_needed(what, verdict.words)
        if self.pool.set_aside(lease, verdict.words or "refused with 401"):
            self.on_trouble(f"{lease.name} is set aside: {verdict.words}")

    def _check_limits(self, resource: Resource, hits: int, what: str, verdict: Verdict) -> None:
        # without a token these budgets are zero: waiting for their reset would be waiting for ever
        if self.pool.anonymous and resource in (Resource.GRAPHQL, Resource.CODE_SEARCH):
            raise token_needed(what, verdict.words)
        if hits > self.retries.limit_waits:
            raise OutsideSystemError(
                "github",
                f"{what} was refused {hits} times for limits",
                why=verdict.words,
                remedy="Lower the pacing, or find out what else uses these tokens",
            )

    async def _given_up(self, resource: Resource, what: str, verdict: Verdict) -> Exception:
        attempts = f"{what} failed {self.retries.attempts} times"
        try:
            lives = await self.lives(resource)
        except ConfigurationError as error:
            return error
        if lives:
            return ItemFailure(
                FailureKind.OVERLOADED, f"GitHub cannot answer: {attempts}", why=verdict.words, remedy="Try again"
            )
        return OutsideSystemError(
            "github",
            f"{self.url} does not answer: {attempts}",
            why=verdict.words,
            remedy="See whether GitHub is up and GITHUB_API_URL is right; the next run continues from here",
        )


def _too_heavy(what: str, verdict: Verdict) -> ItemFailure:
    return ItemFailure(
        FailureKind.OVERLOADED,
        f"{what} is too heavy for GitHub",
        why=verdict.words,
        remedy="Nothing: smaller pages are requested where there are any",
    )


def _learn(permit: Permit, resource: Resource, headers: Mapping[str, str], now: float) -> None:
    remaining, seconds = headers.get("x-ratelimit-remaining", ""), until_reset(headers, now)
    limit, counted = headers.get("x-ratelimit-limit", ""), headers.get("x-ratelimit-resource", resource)
    if remaining.isdigit() and seconds is not None and counted in set(Resource):
        permit.learn(
            Resource(counted),
            remaining=int(remaining),
            limit=int(limit) if limit.isdigit() else None,
            seconds=seconds,
        )


def _faults(answer: object) -> int:
    return len(answer.errors) if isinstance(answer, GraphQLAnswer) else 0


def _points(resource: Resource, response: httpx.Response | None, answer: object) -> int:
    if response is None or response.status_code >= 500 or response.status_code == httpx.codes.UNAUTHORIZED:
        return 0
    if resource is Resource.GRAPHQL and isinstance(answer, GraphQLAnswer):
        return int((answer.data.get("rateLimit") or {}).get("cost", 1))
    return 1
