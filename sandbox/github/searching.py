"""The search box: qualifiers, ranges and words over issues, pull requests and repositories."""

from __future__ import annotations

import calendar
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from .library import Library, Shelf
from .threads import Issue, PullRequest, State, Thread, merge_moment

_TERM = re.compile(r'(-?)(?:([A-Za-z-]+):)?("[^"]*"|\S+)')
_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?", re.IGNORECASE
)
_SECOND = timedelta(seconds=1)
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)


class BadQueryError(ValueError):
    """A qualifier has a value that cannot be read."""


@dataclass(frozen=True)
class Hit:
    """A thread that was found, and where."""

    shelf: Shelf
    thread: Thread


@dataclass(frozen=True)
class Moments:
    """A closed range of moments."""

    low: datetime
    high: datetime

    def holds(self, moment: datetime | None) -> bool:
        """Whether *moment* is one of them."""
        return moment is not None and self.low <= moment <= self.high


@dataclass
class Query:
    """A search, taken apart. What is unknown is a word."""

    repositories: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    without: list[tuple[str, str]] = field(default_factory=list)
    is_: list[str] = field(default_factory=list)
    moments: dict[str, list[Moments]] = field(default_factory=dict)
    equals: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    sort: str = "created-desc"


_MOMENTS = {"merged", "created", "closed", "updated", "pushed"}
_EQUALS = {"author", "label", "base", "head", "language", "archived", "fork", "in", "draft", "linked"}
_COUNTS = {"stars", "size", "comments"}


def parse_query(text: str) -> Query:
    """Take *text* apart; raises BadQueryError for a date or number that is none."""
    query = Query()
    for negated, name, raw in _TERM.findall(text):
        name, value = name.lower(), raw.strip('"')
        if name == "type":
            name = "is"
        if name == "state":
            name = "is"
        if negated:
            query.without.append((name, value.lower()))
        elif name == "repo":
            query.repositories.append(value.lower())
        elif name in ("org", "user"):
            query.owners.append(value.lower())
        elif name == "is":
            query.is_.append(value.lower())
        elif name == "sort":
            query.sort = value.lower()
        elif name in _MOMENTS:
            query.moments.setdefault(name, []).append(parse_moments(value))
        elif name in _COUNTS:
            query.counts.setdefault(name, []).append(parse_counts(value))
        elif name in _EQUALS:
            query.equals.setdefault(name, []).append(value.lower())
        else:
            query.words.append((f"{name}:{value}" if name else value).lower())
    return query


def parse_moments(text: str) -> Moments:
    """`A..B`, `>=A`, `>A`, `<=A`, `<A`, `A`; both ends included, a date is a whole day, `*` is open."""
    low, dots, high = text.partition("..")
    if dots:
        return Moments(_FIRST if low == "*" else _moment(low).low, _LAST if high == "*" else _moment(high).high)
    if text.startswith(">="):
        return Moments(_moment(text[2:]).low, _LAST)
    if text.startswith("<="):
        return Moments(_FIRST, _moment(text[2:]).high)
    if text.startswith(">"):
        return Moments(_moment(text[1:]).high + _SECOND, _LAST)
    if text.startswith("<"):
        return Moments(_FIRST, _moment(text[1:]).low - _SECOND)
    return _moment(text)


def parse_counts(text: str) -> tuple[float, float]:
    """A range of numbers in the same syntax, both ends included."""
    try:
        low, dots, high = text.partition("..")
        if dots:
            return (float("-inf") if low == "*" else int(low), float("inf") if high == "*" else int(high))
        if text.startswith((">=", "<=")):
            return (int(text[2:]), float("inf")) if text[0] == ">" else (float("-inf"), int(text[2:]))
        if text.startswith((">", "<")):
            return (int(text[1:]) + 1, float("inf")) if text[0] == ">" else (float("-inf"), int(text[1:]) - 1)
        return (int(text), int(text))
    except ValueError:
        raise BadQueryError(f"{text!r} is not a number") from None


def _moment(text: str) -> Moments:
    match = _DATE.fullmatch(text)
    if match is None:
        raise BadQueryError(f"{text!r} is not a date")
    year, month, day, hour, minute, second, zone = match.groups()
    try:
        low = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        raise BadQueryError(f"{text!r} is not a date") from None
    if second:
        length = _SECOND
    elif minute:
        length = timedelta(minutes=1)
    elif day:
        length = timedelta(days=1)
    elif month:
        length = timedelta(days=calendar.monthrange(low.year, low.month)[1])
    else:
        length = timedelta(days=366 if calendar.isleap(low.year) else 365)
    if zone and zone.upper() != "Z":
        digits = zone[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        low += offset if zone[0] == "-" else -offset
    return Moments(low, low + length - _SECOND)


def search_threads(library: Library, query: Query, *, private: bool) -> list[Hit]:
    """All issues and pull requests that *query* finds, in its order.

    Former names of repositories find nothing, as on GitHub; *private* says whether private repositories are seen.
    """
    hits = []
    for shelf in _searched(library, query, private=private):
        tracker = shelf.tracker()
        wanted: Iterable[Thread] = tracker.threads()
        if "merged" in query.moments:
            wanted = _merged_within(tracker.by_merge, query.moments["merged"])
        elif "pr" in query.is_ or "merged" in query.is_:
            wanted = tracker.pull_requests.values()
        elif "issue" in query.is_:
            wanted = tracker.issues.values()
        hits += [Hit(shelf, thread) for thread in wanted if _matches(query, shelf, thread)]
    return _sorted(hits, query.sort)


def _merged_within(by_merge: Sequence[PullRequest], spans: Sequence[Moments]) -> Sequence[PullRequest]:
    """Those of *by_merge*, which is ordered by time, that were merged within all *spans*."""
    low, high = max(span.low for span in spans), min(span.high for span in spans)
    return by_merge[bisect_left(by_merge, low, key=merge_moment) : bisect_right(by_merge, high, key=merge_moment)]


def search_repositories(library: Library, query: Query, *, private: bool) -> list[Shelf]:
    """All repositories that *query* finds, most stars first. Forks only with `fork:true` or `fork:only`."""
    found = [shelf for shelf in _searched(library, query, private=private) if _repository_matches(query, shelf)]
    return sorted(found, key=lambda shelf: (-shelf.facts.stars, shelf.name.lower()))


def _searched(library: Library, query: Query, *, private: bool) -> list[Shelf]:
    shelves = library.shelves()
    if query.repositories or query.owners:
        shelves = [
            shelf
            for shelf in shelves
            if shelf.name.lower() in query.repositories or shelf.owner.lower() in query.owners
        ]
    barred = {value for name, value in query.without if name == "repo"}
    return [
        shelf
        for shelf in shelves
        if shelf.name.lower() not in barred and not shelf.facts.is_gone and (private or not shelf.facts.is_private)
    ]


def _matches(query: Query, shelf: Shelf, thread: Thread) -> bool:
    return (
        all(_is(thread, shelf, what) for what in query.is_)
        and not any(_excluded(thread, shelf, name, value) for name, value in query.without)
        and all(span.holds(_moment_of(thread, name)) for name, spans in query.moments.items() for span in spans)
        and all(_equals(thread, shelf, name, value) for name, values in query.equals.items() for value in values)
        and all(_says(thread, word) for word in query.words)
    )


_CHECKS: dict[str, Callable[[Thread, Shelf], bool]] = {
    "pr": lambda thread, _: isinstance(thread, PullRequest),
    "issue": lambda thread, _: isinstance(thread, Issue),
    "merged": lambda thread, _: thread.state is State.MERGED,
    "unmerged": lambda thread, _: isinstance(thread, PullRequest) and thread.state is not State.MERGED,
    "open": lambda thread, _: thread.state is State.OPEN,
    "closed": lambda thread, _: thread.state is not State.OPEN,
    "public": lambda _, shelf: not shelf.facts.is_private,
    "private": lambda _, shelf: shelf.facts.is_private,
    "draft": lambda _, __: False,
}


def _is(thread: Thread, shelf: Shelf, what: str) -> bool:
    check = _CHECKS.get(what)
    return check is not None and check(thread, shelf)


def _excluded(thread: Thread, shelf: Shelf, name: str, value: str) -> bool:
    if name == "repo":
        return False
    if name == "is":
        return _is(thread, shelf, value)
    return _equals(thread, shelf, name, value) if name in _EQUALS else _says(thread, value)


def _moment_of(thread: Thread, name: str) -> datetime | None:
    if name == "merged":
        return thread.merged_at if isinstance(thread, PullRequest) else None
    if name == "closed":
        return thread.closed_at
    return thread.updated_at if name in ("updated", "pushed") else thread.created_at


def _equals(thread: Thread, shelf: Shelf, name: str, value: str) -> bool:
    match name:
        case "author":
            return (thread.author or "ghost").lower() == value
        case "label":
            return value in (label.lower() for label in thread.labels)
        case "base":
            return isinstance(thread, PullRequest) and thread.base_ref.lower() == value
        case "head":
            return isinstance(thread, PullRequest) and thread.head_ref.lower() == value
        case "language":
            return shelf.facts.language.lower() == value
        case "archived":
            return shelf.facts.is_archived == (value == "true")
        case "draft":
            return value == "false"
        case _:
            return True


def _says(thread: Thread, word: str) -> bool:
    return word in thread.title.lower() or word in thread.body.lower()


def _repository_matches(query: Query, shelf: Shelf) -> bool:
    facts = shelf.facts
    fork = query.equals.get("fork", ["false"])[-1]
    if (fork == "only" and not facts.is_fork) or (fork == "false" and facts.is_fork):
        return False
    if any(not low <= facts.stars <= high for low, high in query.counts.get("stars", ())):
        return False
    if any(facts.language.lower() != language for language in query.equals.get("language", ())):
        return False
    if any(facts.is_archived != (value == "true") for value in query.equals.get("archived", ())):
        return False
    if any({"archived": facts.is_archived, "fork": facts.is_fork}.get(value) is False for value in query.is_):
        return False
    return all(word in f"{shelf.name} {facts.description}".lower() for word in query.words)


def _sorted(hits: list[Hit], sort: str) -> list[Hit]:
    by, _, direction = sort.partition("-")

    def key(hit: Hit) -> tuple[object, ...]:
        thread = hit.thread
        tail = (hit.shelf.name.lower(), thread.number)
        match by:
            case "updated":
                return (thread.updated_at, *tail)
            case "comments":
                return (len(thread.comments), *tail)
            case _:
                return (thread.created_at, *tail)

    return sorted(hits, key=key, reverse=direction != "asc")
