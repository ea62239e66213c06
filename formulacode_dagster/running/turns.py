"""Kinds of work of which one kind may run at a time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Lets work of one kind run side by side, and makes that of every other kind wait for its end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: Counter[str] = Counter()

    @contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """Be at work of *kind* inside the block; waits while there is work of another."""
        with self._changed:
            self._changed.wait_for(lambda: not any(count for other, count in self._running.items() if other != kind))
            self._running[kind] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[kind] -= 1
                self._changed.notify_all()
