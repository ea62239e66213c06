"""Tells an outside system that is down from items that fail: three unlike ones, lost in a row, are its failure."""

from __future__ import annotations

from collections import defaultdict
from typing import Generic

from formulacode_dagster.models.errors import OutsideSystemError, SuspectedOutage

from .results import Result
from .work import Outcome, R, T, WorkItem

UNLIKE_ITEMS = 3
"""Items of so many repositories: what they have in common is the system."""


class Outages(Generic[R]):
    """Holds back how items ended that were lost to a system, until it is known whether it is down."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[str, Result[R]]]] = defaultdict(list)

    def settle(self, item: WorkItem[T], end: Outcome[R] | Exception, result: Result[R]) -> list[Result[R]]:
        """What may be kept now that *item* ended with *result*.

        An item that was worked on to its end clears every system. Raises OutsideSystemError when too many unlike items
        were lost to one without that; none of them has failed then.
        """
        if isinstance(end, SuspectedOutage):
            held = self._held[end.system]
            held.append((item.repository, result))
            if len({repository for repository, _ in held}) >= UNLIKE_ITEMS:
                raise OutsideSystemError(
                    end.system,
                    f"{len(held)} items of {UNLIKE_ITEMS} repositories in a row were lost to it",
                    why=str(end),
                    remedy="See whether it works, then run the month again: it goes on where this run stopped",
                ) from end
            return []
        return [*(self.held_back() if isinstance(end, Outcome) else ()), result]

    def held_back(self) -> list[Result[R]]:
        """What was held back and is the items' own failure after all."""
        results = [result for held in self._held.values() for _, result in held]
        self._held.clear()
        return results
