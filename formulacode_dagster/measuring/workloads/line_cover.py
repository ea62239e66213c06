"""The order of tests or benchmarks in which few of them execute as much of a change as possible."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

P = TypeVar("P")
Line = tuple[object, str, int]
"""Side, path and number."""


def covering_first(parts: Sequence[P], lines_of: Callable[[P], AbstractSet[Line]], limit: int = sys.maxsize) -> list[P]:
    """Sort *parts* so that each of the first executes as many lines as possible that none before it does.

    At most *limit* are sorted so; the others follow in their order.
    """
    lines = [lines_of(part) for part in parts]
    rest, first = list(range(len(parts))), list[int]()
    left = set[Line]().union(*lines)
    while left and len(first) < limit:
        best = max(rest, key=lambda place: len(lines[place] & left))  # of equals the first
        first.append(best)
        rest.remove(best)
        left -= lines[best]
    return [parts[place] for place in (*first, *rest)]
