"""Circuit breaker for outside systems: three unlike items lost in a row are an outage."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Generic

from formulacode_dagster.models.errors import OutsideSystemError, SuspectedOutage
from formulacode_dagster.operating.cancellation.last_answers import has_answered_since

from .results import Result
from .work import Outcome, R, T, WorkItem

UNLIKE_ITEMS = 3
"""Items of this many repositories have only the system in common."""


class CircuitBreaker(Generic[R]):
    """Holds back results of items lost to a system until it is known whether it is down."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[str, Result[R]]]] = defaultdict(list)
        self._lost_at: dict[str, float] = {}

    def record(self, item: WorkItem[T], end: Outcome[R] | Exception, result: Result[R]) -> list[Result[R]]:
        """Return the results that may be stored now that *item* has ended with *result*.

        A system that has answered since its last loss is cleared; results from a cache do not count. Raises
        OutsideSystemError if too many unlike items were lost without an answer in between; none of them has failed
        then.
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
                    remedy="See whether it works, then run the month again: it continues where this run stopped. "
                    "If it does work, run one of them by itself (--only), which then fails by its name",
                ) from end
            return cleared
        return [*cleared, result]

    def held_back(self) -> list[Result[R]]:
        """Return the held-back results, which are the items' own failures after all."""
        return [result for system in list(self._held) for result in self._give_up(system)]

    def _give_up(self, system: str) -> list[Result[R]]:
        self._lost_at.pop(system, None)
        return [result for _, result in self._held.pop(system, [])]
