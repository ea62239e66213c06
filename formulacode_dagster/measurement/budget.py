"""The time that a task's measurement may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

T = TypeVar("T")


class Budget:
    """Counts down from so many seconds, but not while something else is done than running benchmarks."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._start = clock()
        self._elsewhere = 0.0

    @property
    def spent(self) -> float:
        """Seconds used up."""
        return self._clock() - self._start - self._elsewhere

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._seconds - self.spent)

    @property
    def elsewhere(self) -> float:
        """Seconds spent while it was paused."""
        return self._elsewhere

    def paused_between(self, items: Iterable[T]) -> Iterator[T]:
        """*items*, paused while each is made: those who make them have limits of their own."""
        making = iter(items)
        while True:
            with self.paused():
                try:
                    item = next(making)
                except StopIteration:
                    return
            yield item

    @contextmanager
    def paused_at_first(self, context: AbstractContextManager[T]) -> Iterator[T]:
        """*context*, paused while it is entered: what is waited for there is not this task's time."""
        with ExitStack() as stack:
            with self.paused():
                entered = stack.enter_context(context)
            yield entered

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Builds have a limit of their own."""
        start = self._clock()
        try:
            yield
        finally:
            self._elsewhere += self._clock() - start
