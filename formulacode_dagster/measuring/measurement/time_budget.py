"""The time that a task's measurement may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TypeVar

T = TypeVar("T")
SURVEY_SHARE = 0.25
"""Share of the remaining time for a survey of one arm."""


class TimeBudget:
    """Counts down from so many seconds, but not while something else is done than running benchmarks."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._start = clock()
        self._elsewhere = 0.0
        self._building = 0.0

    @property
    def spent(self) -> float:
        """Seconds used up."""
        return self._clock() - self._start - self._elsewhere

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.seconds - self.spent)

    def add(self, seconds: float) -> None:
        """Allow so many more."""
        self.seconds += seconds

    def for_survey(self, most: float) -> float:
        """Seconds for a survey of one arm, at most so many: other surveys and the samples need some, too."""
        return min(most, SURVEY_SHARE * self.left)

    @property
    def built(self) -> float:
        """Seconds spent on builds, without waiting."""
        return self._building

    def paused_between(
        self, items: Iterable[T], turn: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Iterator[T]:
        """Iterate over *items* with the budget paused while each is made in a *turn*, since their makers have other
        limits.
        """
        making = iter(items)
        while True:
            with self.paused(), turn():
                try:
                    item = next(making)
                except StopIteration:
                    return
            yield item

    @contextmanager
    def paused_at_first(self, context: AbstractContextManager[T]) -> Iterator[T]:
        """Enter *context* with the budget paused: waiting does not count as this task's time."""
        with ExitStack() as stack:
            with self.paused():
                entered = stack.enter_context(context)
            yield entered

    @contextmanager
    def building(self, turn: AbstractContextManager[None] | None = None) -> Iterator[None]:
        """Build in the block, in *turn* if there is one: builds have a separate limit, waiting has none."""
        with self.paused_at_first(turn or nullcontext()), self.paused():
            start = self._clock()
            try:
                yield
            finally:
                self._building += self._clock() - start

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing in the block."""
        start = self._clock()
        try:
            yield
        finally:
            self._elsewhere += self._clock() - start
