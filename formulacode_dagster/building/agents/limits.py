"""Error messages with which endpoints and agents stop: a bad key, a quota with a reset time, too many requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from .protocol import AgentOutcome

_BAD_KEY = frozenset({401, 403})
_BUSY = frozenset({0, 408, 500, 502, 503, 504, 529})
_LIMIT = 429
_SHORT = timedelta(seconds=20)
"""Agents wait out a shorter pause by themselves."""

_KEY_WORDS = re.compile(
    r"invalid (x-)?api.?key|incorrect api key|api key not valid|authentication_error|not logged in|unauthorized"
    r"|API_KEY_INVALID|invalid_api_key",
    re.IGNORECASE,
)
_LIMIT_WORDS = re.compile(
    r"hit your (usage )?limit|usage limit|rate.?limit|quota exceeded|RESOURCE_EXHAUSTED|too many requests"
    r"|insufficient_quota|credit balance is too low",
    re.IGNORECASE,
)
_BUSY_WORDS = re.compile(r"overloaded|server_is_overloaded|high demand|UNAVAILABLE|service unavailable", re.IGNORECASE)
_RESETS = re.compile(r'"?(?:resetsAt|resets_at|reset_at)"?\s*[:=]\s*"?(\d{10})(?:\d{3})?\b')
_IN = re.compile(
    r"(?:try again|retry|resets?) (?:in|after) (?:(\d+)\s*d\w*\W+)?(?:(\d+)\s*h\w*\W+)?(?:(\d+)\s*m(?!s)\w*\W*)?"
    r"(?:(?:and )?([\d.]+)\s*s)?",
    re.IGNORECASE,
)
_AT = re.compile(r"(?:try again|resets?) at ([^\"\n]{4,60})", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<=\d)(st|nd|rd|th)\b")
_FORMS = ("%b %d, %Y %I:%M %p", "%B %d, %Y %I:%M %p")
_CLOCK = ("%I:%M %p", "%I %p", "%I%p", "%I:%M%p", "%H:%M")


@dataclass(frozen=True)
class RunEnd:
    """How and why a run of an agent ended, if the host or the agent reports it."""

    outcome: AgentOutcome
    detail: str
    until: datetime | None = None


def ended_by_answer(status: int, headers: Mapping[str, str], answer: str, *, now: datetime) -> RunEnd | None:
    """Return the outcome of a run for an endpoint's error of *status*; None if the agent may retry at once or never."""
    detail = f"HTTP {status}: {_line(answer)}" if status else _line(answer)
    if status in _BAD_KEY or (status == 400 and _KEY_WORDS.search(answer)):
        return RunEnd(AgentOutcome.BAD_KEY, detail)
    if status == _LIMIT:
        until = until_of_headers(headers, now) or until_of_text(answer, now)
        if until is not None and until - now <= _SHORT:
            return None
        return RunEnd(AgentOutcome.LIMITED, detail, until)
    return RunEnd(AgentOutcome.OVERLOADED, detail) if status in _BUSY else None


def ended_by_text(text: str, *, now: datetime) -> RunEnd | None:
    """Return the report of a failed agent about its endpoint, if it makes one."""
    for words, outcome in (
        (_KEY_WORDS, AgentOutcome.BAD_KEY),
        (_LIMIT_WORDS, AgentOutcome.LIMITED),
        (_BUSY_WORDS, AgentOutcome.OVERLOADED),
    ):
        if match := words.search(text):
            begin = text.rfind("\n", 0, match.start()) + 1
            until = until_of_text(text[begin:], now) if outcome is AgentOutcome.LIMITED else None
            return RunEnd(outcome, _line(text[begin:]), until)
    return None


def until_of_headers(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """The instant that `Retry-After` (RFC 9110, seconds or a date) or Anthropic's own header names."""
    named = {name.lower(): value.strip() for name, value in headers.items()}
    after = named.get("retry-after", "")
    if re.fullmatch(r"\d+(\.\d+)?", after):
        return now + timedelta(seconds=float(after))
    for text, read in ((after, parsedate_to_datetime), (named.get("anthropic-ratelimit-unified-reset", ""), _epoch)):
        try:
            return read(text).astimezone(UTC)
        except (ValueError, TypeError, OverflowError, OSError):
            continue
    return None


def until_of_text(text: str, now: datetime) -> datetime | None:
    """Return the instant after which a retry is possible according to *text*; times without a zone are taken as UTC."""
    if match := _RESETS.search(text):
        return _epoch(match[1])
    match = _IN.search(text)
    if match and any(match.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    match = _AT.search(text)
    return None if match is None else _instant(_ORDINAL.sub("", match[1]).strip(" ."), now)


def _instant(text: str, now: datetime) -> datetime | None:
    """The instant that *text* begins with."""
    words = text.split(" ")
    for count in range(len(words), 0, -1):
        head = " ".join(words[:count]).rstrip(".,;")
        with suppress(ValueError):
            read = datetime.fromisoformat(head)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        for form in _FORMS:
            with suppress(ValueError):
                return datetime.strptime(head, form).replace(tzinfo=UTC)
        for form in _CLOCK:
            with suppress(ValueError):
                clock = datetime.strptime(head, form).replace(tzinfo=UTC)
                at = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
                return at if at > now else at + timedelta(days=1)
    return None


def _epoch(text: str) -> datetime:
    return datetime.fromtimestamp(int(text), tz=UTC)


def _line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]
