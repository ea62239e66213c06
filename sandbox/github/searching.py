"""The search box, as far as this platform fills it in: which pull requests some repositories merged when."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from .served_folder import ServedFolder, ServedRepository
from .threads import PullRequest, State, merge_moment

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SECOND = timedelta(seconds=1)
_ORDERS = {"created-asc": False, "created-desc": True}


class BadQueryError(ValueError):
    """A qualifier has a value that cannot be read."""


@dataclass(frozen=True)
class Hit:
    """A found pull request, and its repository."""

    served: ServedRepository
    pull_request: PullRequest


@dataclass(frozen=True)
class Moments:
    """A closed range of moments."""

    low: datetime
    high: datetime


@dataclass
class Query:
    """A search, taken apart. `repositories` are in lower case; none are all."""

    repositories: list[str] = field(default_factory=list)
    only_merged: bool = False
    merged: list[Moments] = field(default_factory=list)
    newest_first: bool = True


def parse_query(text: str) -> Query:
    """Take *text* apart; raises BadQueryError for a date that is none.

    Raises NotImplementedError for qualifiers that GitHub supports and this sandbox does not: a response would be made
    up.
    """
    query = Query()
    terms = text.lower().split()
    for term in terms:
        name, _, value = term.partition(":")
        if name == "repo":
            query.repositories.append(value)
        elif name == "merged":
            query.merged.append(parse_moments(value))
        elif name == "sort" and value in _ORDERS:
            query.newest_first = _ORDERS[value]
        elif term == "is:merged":
            query.only_merged = True
        elif term != "is:pr":
            raise NotImplementedError(f"the sandbox does not search by {term!r}")
    if "is:pr" not in terms:
        raise NotImplementedError(f"the sandbox searches pull requests only: is:pr is missing in {text!r}")
    return query


def parse_moments(text: str) -> Moments:
    """`A..B` or `A`; both ends included, a date is a whole day. Raises BadQueryError."""
    low, _, high = text.upper().partition("..")
    return Moments(_moment(low).low, _moment(high or low).high)


def parse_sizes(text: str) -> tuple[int, int | None]:
    """`A..B` or `>=A` as the first and the last number that is meant, None for no last. Raises BadQueryError."""
    match = re.fullmatch(r"(\d+)\.\.(\d+)|>=(\d+)", text)
    if match is None:
        raise BadQueryError(f"{text!r} is no range of sizes")
    return (int(match[1]), int(match[2])) if match[1] else (int(match[3]), None)


def _moment(text: str) -> Moments:
    try:
        low = datetime.fromisoformat(text)
    except ValueError:
        raise BadQueryError(f"{text!r} is not a date") from None
    low = low if low.tzinfo else low.replace(tzinfo=UTC)
    return Moments(low, low + timedelta(days=1) - _SECOND if _DAY.fullmatch(text) else low)


def search_pull_requests(folder: ServedFolder, query: Query, *, private: bool) -> list[Hit]:
    """All pull requests that *query* finds, in its order.

    Former names of repositories find nothing, as on GitHub; *private* says whether private repositories are seen.
    """
    hits = [
        Hit(served, pull_request)
        for served in folder.repositories()
        if (not query.repositories or served.name.lower() in query.repositories)
        and not (served.facts.is_gone or served.facts.is_unindexed or served.facts.is_nameless)
        and (private or not served.facts.is_private)
        for pull_request in _wanted(served, query)
        if not query.only_merged or pull_request.state is State.MERGED
    ]
    return sorted(
        hits,
        key=lambda hit: (hit.pull_request.created_at, hit.served.name.lower(), hit.pull_request.number),
        reverse=query.newest_first,
    )


def _wanted(served: ServedRepository, query: Query) -> Sequence[PullRequest]:
    unindexed = {facts.number for facts in served.facts.pull_requests if facts.is_unindexed}
    return [found for found in _merged_then(served, query) if found.number not in unindexed]


def _merged_then(served: ServedRepository, query: Query) -> Sequence[PullRequest]:
    tracker = served.tracker()
    if not query.merged:
        return list(tracker.pull_requests.values())
    by_merge = tracker.by_merge
    low, high = max(span.low for span in query.merged), min(span.high for span in query.merged)
    return by_merge[bisect_left(by_merge, low, key=merge_moment) : bisect_right(by_merge, high, key=merge_moment)]
