"""Tells an outside system that is down from items that fail: three unlike ones, lost in a row, are its failure."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Generic

from formulacode_dagster.models.errors import OutsideSystemError, SuspectedOutage
from formulacode_dagster.operating.cancellation.answers import has_answered_since

from .results import Result
from .work import Outcome, R, T, WorkItem

UNLIKE_ITEMS = 3
"""Items of so many repositories: what they have in common is the system."""


class Outages(Generic[R]):
    """Holds back how items ended that were lost to a system, until it is known whether it is down."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[str, Result[R]]]] = defaultdict(list)
        self._lost_at: dict[str, float] = {}

    def settle(self, item: WorkItem[T], end: Outcome[R] | Exception, result: Result[R]) -> list[Result[R]]:
        """What may be kept now that *item* ended with *result*.

        A system that has answered since it was lost last is cleared: what is done without asking it, from a cache, says
        nothing of it. Raises OutsideSystemError when too many unlike items were lost to one without that; none of them
        has failed then.
        """
        cleared = [
            cleared
            for system in [name for name, moment in self._lost_at.items() if has_answered_since(name, moment)]
            for cleared in self._give_up(system)
        ]
        if isinstance(end, SuspectedOutage):
            held = self._held[end.system]
            held.append((item.repository, result))
            self._lost_at[end.system] = time.monotonic()
            if len({repository for repository, _ in held}) >= UNLIKE_ITEMS:
                raise OutsideSystemError(
                    end.system,
                    f"{len(held)} items of {UNLIKE_ITEMS} repositories in a row were lost to it",
                    why=str(end),
                    remedy="See whether it works, then run the month again: it goes on where this run stopped. "
                    "If it does work, run one of them by itself (--only), which then fails by its name",
                ) from end
            return cleared
        return [*cleared, result]

    def held_back(self) -> list[Result[R]]:
        """What was held back and is the items' own failure after all."""
        return [result for system in list(self._held) for result in self._give_up(system)]

    def _give_up(self, system: str) -> list[Result[R]]:
        self._lost_at.pop(system, None)
        return [result for _, result in self._held.pop(system, [])]
