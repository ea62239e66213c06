"""Which searches to make: repositories that merged little share one, a window too large for one is cut by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .counting import Counted
from .windows import Window, search_text

SEARCH_CAP = 1_000
"""https://docs.github.com/en/rest/search/search#about-search: more results than these are never shown."""
LONGEST_QUERY = 256
"""GitHub documents 256 characters without qualifiers, and has been seen to count them; here they all count.

https://docs.github.com/en/search-github/getting-started-with-searching-on-github/troubleshooting-search-queries
"""
FULL_PART = 800
"""Aimed-at size of a part when a window is cut: merges are not spread evenly."""


@dataclass(frozen=True)
class Leaf:
    """One search, all of whose results can be shown: repositories of one window, and what each has in it."""

    counted: tuple[Counted, ...]

    @property
    def window(self) -> Window:
        """What its repositories have in common."""
        return self.counted[0].window

    @property
    def count(self) -> int:
        """How many results it has, by the counts of its repositories."""
        return sum(one.count for one in self.counted)

    @property
    def text(self) -> str:
        """As GitHub reads it."""
        return search_text((one.name for one in self.counted), self.window)


def pack(counted: Sequence[Counted], *, cap: int = SEARCH_CAP, longest: int = LONGEST_QUERY) -> tuple[Leaf, ...]:
    """*counted*, all of one window and none above *cap*, in as few searches as first-fit finds, the largest first.

    A repository that merged nothing needs no search. The order of *counted* does not matter.
    """
    bins: list[list[Counted]] = []
    for one in sorted(counted, key=lambda one: (-one.count, one.name)):
        if not one.count:
            continue
        for packed in bins:
            grown = Leaf((*packed, one))
            if grown.count <= cap and len(grown.text) <= longest:
                packed.append(one)
                break
        else:
            bins.append([one])
    return tuple(Leaf(tuple(packed)) for packed in bins)


def cut(counted: Counted, *, full: int = FULL_PART) -> tuple[Window, ...]:
    """The window of *counted* in parts which, if merges were spread evenly, would hold *full* each; two at least.

    Empty when it is a second, the shortest that search can tell apart.
    """
    if counted.window.seconds <= 1:
        return ()
    return counted.window.split(max(2, -(-counted.count // full)))


def join(parts: Sequence[Counted], *, cap: int = SEARCH_CAP) -> tuple[Leaf, ...]:
    """Adjacent *parts* of one repository's window, each within *cap*, in as few searches as they fit in."""
    joined: list[Counted] = []
    for part in sorted(parts, key=lambda part: part.window.start):
        before = joined[-1] if joined else None
        if before is not None and before.count + part.count <= cap:
            whole = before.window.joined(part.window)
            joined[-1] = Counted(part.repository, part.name, whole, before.count + part.count)
        else:
            joined.append(part)
    return tuple(Leaf((part,)) for part in joined if part.count)
