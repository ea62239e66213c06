"""The single table of reactions to unsuccessful answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import httpx

from formulacode_dagster.operating.cancellation.backoff import Backoff, retry_after, server_time

from .answers import GraphQLError
from .pacing import QUERY_SECONDS


class Outcome(StrEnum):
    """Reaction to an answer."""

    OK = "ok"
    MOVED = "moved"
    PRIMARY_LIMIT = "primary_limit"
    SECONDARY_LIMIT = "secondary_limit"
    PASSING = "passing"
    UNAUTHORIZED = "unauthorized"
    UNDERSCOPED = "underscoped"
    FORBIDDEN = "forbidden"
    """Not for this token (an organization's SAML, list of addresses, limit of lifetimes); another may see it."""
    TOO_HEAVY = "too_heavy"
    """GitHub spent the time that one query may take: the same one would spend it again."""
    PERMANENT = "permanent"


STATUS: Mapping[int, Outcome] = {
    301: Outcome.MOVED,
    302: Outcome.MOVED,
    307: Outcome.MOVED,
    308: Outcome.MOVED,
    401: Outcome.UNAUTHORIZED,
    404: Outcome.PERMANENT,
    408: Outcome.PASSING,
    410: Outcome.PERMANENT,
    422: Outcome.PERMANENT,
    451: Outcome.PERMANENT,
}
"""By status; other 2xx are OK, other 4xx permanent, all 5xx transient. A 403 or 429 depends on headers and body."""

OVERRUN_SECONDS = 0.9 * QUERY_SECONDS
OVERRUNS = 2
"""So often a query may overrun: a third time would spend the time again."""

PASSING_ERRORS = (httpx.TransportError, httpx.DecodingError)
"""Refused, reset, timed out, or a body that broke off."""

_PASSING_MESSAGES = ("something went wrong", "timeout", "timed out", "temporarily", "try again", "loading")
_UNDERSCOPED_MARKS = ("resource not accessible by", "required scopes", "must be authenticated with")
_UNDERSCOPED_TYPES = frozenset({"INSUFFICIENT_SCOPES"})
_LIMIT_TYPES = frozenset({"RATE_LIMITED", "RATE_LIMIT"})
_PASSING_TYPES = frozenset({"SERVICE_UNAVAILABLE", "INTERNAL", "INTERNAL_ERROR", "INTERNAL_SERVER_ERROR"})


@dataclass(frozen=True)
class Verdict:
    """Reaction, and the wait that GitHub requested."""

    outcome: Outcome
    wait: float | None = None
    words: str = ""
    status: int | None = None
    """HTTP status behind it; None if the status was fine but the content was not."""
    seconds: float = 0.0
    """Time until the answer."""

    @property
    def has_overrun(self) -> bool:
        """Return True if GitHub gave up on the answer after the time that it has for one."""
        return self.status in (502, 504) and self.seconds >= OVERRUN_SECONDS


PASSING = Backoff(first_seconds=0.5, longest_seconds=30.0, jitter=(0.5, 1.0))
LIMITED = Backoff(first_seconds=60.0, longest_seconds=900.0, jitter=(1.0, 1.5))


@dataclass(frozen=True)
class TransportRetries:
    """Numbers of retries of transient failures, and of waits for limits without a time, and their lengths.

    Without a time from GitHub, a limit is waited for a minute at least, as
    docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api ("Exceeding the rate limit") asks.
    """

    attempts: int = 6
    passing: Backoff = PASSING
    limit_waits: int = 20
    limited: Backoff = LIMITED


def judge(response: httpx.Response, words: str, now: float) -> Verdict:
    """Return the reaction to status and headers of *response*; *words* is GitHub's message, *now* the local time."""
    return replace(_judged(response, words, now), status=response.status_code)


def _judged(response: httpx.Response, words: str, now: float) -> Verdict:
    status = response.status_code
    if 200 <= status < 300:
        return Verdict(Outcome.OK)
    if status in (403, 429):
        return _limit(response, words, now)
    if status in STATUS:
        return Verdict(STATUS[status], words=words)
    if status >= 500:
        return Verdict(Outcome.PASSING, retry_after(response.headers, now), words)
    return Verdict(Outcome.PERMANENT, words=words)


def _limit(response: httpx.Response, words: str, now: float) -> Verdict:
    after = retry_after(response.headers, now)
    if after is not None:
        return Verdict(Outcome.SECONDARY_LIMIT, after, words)
    if response.headers.get("x-ratelimit-remaining") == "0":
        return Verdict(Outcome.PRIMARY_LIMIT, until_reset(response.headers, now), words)
    if response.status_code == 429 or any(mark in words.lower() for mark in ("rate limit", "abuse")):
        return Verdict(Outcome.SECONDARY_LIMIT, words=words)
    return Verdict(Outcome.UNDERSCOPED if _is_underscoped(words) else Outcome.FORBIDDEN, words=words)


def judge_graphql(errors: Sequence[GraphQLError], *, has_data: bool, headers: Mapping[str, str], now: float) -> Verdict:
    """Return the reaction to a GraphQL answer with HTTP status 200. Errors about parts of the data leave it OK, unless
    another token might see those parts.
    """
    words = "; ".join(str(error) for error in errors)
    if any("secondary rate limit" in error.message.lower() for error in errors):
        return Verdict(Outcome.SECONDARY_LIMIT, retry_after(headers, now), words)
    if any(error.type in _LIMIT_TYPES for error in errors):
        wait = retry_after(headers, now)
        return Verdict(Outcome.PRIMARY_LIMIT, until_reset(headers, now) if wait is None else wait, words)
    if any(error.type in _UNDERSCOPED_TYPES or _is_underscoped(error.message) for error in errors):
        return Verdict(Outcome.UNDERSCOPED, words=words)
    if any(error.type == "RESOURCE_LIMITS_EXCEEDED" for error in errors):
        # with a path too: what was cut off is null, or shorter than it is
        return Verdict(Outcome.TOO_HEAVY, words=words)
    whole = [error for error in errors if not error.path]
    if (has_data or whole) and all(error.type == "FORBIDDEN" for error in whole) and _is_forbidden(errors):
        return Verdict(Outcome.FORBIDDEN, words=words)
    if has_data and not whole:
        return Verdict(Outcome.OK)
    if not errors:
        return Verdict(Outcome.PASSING, words="neither data nor errors")
    if all(_is_passing(error) for error in whole or errors):
        return Verdict(Outcome.PASSING, words=words)
    return Verdict(Outcome.PERMANENT, words=words)


def _is_forbidden(errors: Sequence[GraphQLError]) -> bool:
    return any(error.type == "FORBIDDEN" for error in errors)


def _is_underscoped(words: str) -> bool:
    return any(mark in words.lower() for mark in _UNDERSCOPED_MARKS)


def _is_passing(error: GraphQLError) -> bool:
    message = error.message.lower()
    return error.type in _PASSING_TYPES or any(mark in message for mark in _PASSING_MESSAGES)


def until_reset(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until `x-ratelimit-reset`, by GitHub's clock if the answer has it; None without the header."""
    text = headers.get("x-ratelimit-reset", "")
    return max(0.0, int(text) - server_time(headers, now)) if text.isdigit() else None
