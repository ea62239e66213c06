"""Which core a measurement keeps to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager


class Cores:
    """The cores of what is timed at the same time: no two share one while there are others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: list[int] = []

    @contextmanager
    def reserved(self, choose: Callable[[Collection[int]], int]) -> Iterator[int]:
        """Take the core that *choose* gives for those that are taken, counted from the last, as long as the block."""
        with self._lock:
            core = choose(self._taken)
            self._taken.append(core)
        try:
            yield core
        finally:
            with self._lock:
                self._taken.remove(core)
