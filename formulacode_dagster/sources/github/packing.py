"""Packing of searches into requests, and splitting of windows that are too large for one search."""

from __future__ import annotations

from collections.abc import Sequence

from .counting import Counted
from .search_limits import PUBLIC, SearchLimits
from .windows import Window

SEARCHES_PER_REQUEST = 20


def pack(searches: Sequence[Counted], limits: SearchLimits = PUBLIC) -> tuple[tuple[Counted, ...], ...]:
    """*searches* in as few requests as first-fit finds, the largest first; one of more than a page is by itself.

    A repository that merged nothing needs no search. The order of *searches* does not matter.
    """
    requests: list[list[Counted]] = []
    for search in sorted(searches, key=lambda search: (-search.count, search.name, search.window.start)):
        if not search.count:
            continue
        for request in requests:
            if (
                len(request) < SEARCHES_PER_REQUEST
                and sum(other.count for other in request) + search.count <= limits.page
            ):
                request.append(search)
                break
        else:
            requests.append([search])
    return tuple(tuple(request) for request in requests)


def cut(counted: Counted, limits: SearchLimits = PUBLIC) -> tuple[Window, ...]:
    """The window of *counted* in two parts at least, so many that they could be shown if merges were spread evenly.

    Empty if it is a second, the shortest window that search can distinguish.
    """
    if counted.window.seconds <= 1:
        return ()
    return counted.window.split(max(2, -(-counted.count // limits.part)))


def join(parts: Sequence[Counted], limits: SearchLimits = PUBLIC) -> tuple[Counted, ...]:
    """Adjacent *parts* of one repository's window, each of which can be shown, in as few as can be shown."""
    joined: list[Counted] = []
    for part in sorted(parts, key=lambda part: part.window.start):
        before = joined[-1] if joined else None
        if before is not None and before.count + part.count <= limits.shown:
            whole = before.window.joined(part.window)
            joined[-1] = Counted(part.repository, part.name, whole, before.count + part.count)
        else:
            joined.append(part)
    return tuple(joined)
