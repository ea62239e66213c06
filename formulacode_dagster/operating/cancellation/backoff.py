"""Backoff before asking an outside system again: growing waits, or the wait that it requests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Backoff:
    """Waits that double from *first_seconds* to *longest_seconds*, times a random factor within *jitter*.

    The random factor spreads clients that failed together.
    """

    first_seconds: float
    longest_seconds: float
    jitter: tuple[float, float] = (1.0, 1.0)

    def seconds(self, failures: int) -> float:
        """Return the wait in seconds after this many consecutive *failures*, from 1."""
        longest = min(self.first_seconds * 2.0 ** (failures - 1), self.longest_seconds)
        return longest * random.uniform(*self.jitter)  # noqa: S311 - spreads retries, keeps no secret


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or a date, or `retry-after-ms`; None when neither can be read.

    *headers* have lower-case names, or ignore case. A date is relative to the answer's own date, or to *now* (seconds
    since 1970) without one.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if text.replace(".", "", 1).isdecimal():
            return float(text) * unit
        moment = http_date(text)
        if moment is not None:
            return max(0.0, moment - server_time(headers, now))
    return None


def server_time(headers: Mapping[str, str], now: float) -> float:
    """The answer's `Date` in seconds since 1970; *now* without one."""
    moment = http_date(headers.get("date", ""))
    return now if moment is None else moment


def http_date(text: str) -> float | None:
    """A date of HTTP in seconds since 1970; None when it is none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return None
