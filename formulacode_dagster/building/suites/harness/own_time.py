"""What a call takes of its own, on a core that other processes use as well."""

from __future__ import annotations

import resource
import time
import timeit
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .suite import Timer


def own_time(timer: Timer) -> Timer:
    """*timer*, less what others took of the core meanwhile; as it is where its author chose the clock."""
    return OwnTime(timer) if getattr(timer, "timer", None) is timeit.default_timer else timer


class OwnTime:
    """Times as `timeit.Timer` does, by the clock.

    Calls that never waited of their own accord, for a file, a child or a lock, only ever lost the core to others: what
    they take is the time that they had it.
    """

    def __init__(self, timer: Any) -> None:
        self._timer = timer
        timer.timer = self._clock
        self._began: tuple[int, float] | None = None
        self._waits = 0
        self._had = 0.0
        self.waited = False
        """Whether any calls did."""

    def timeit(self, number: int) -> float:
        """Seconds that *number* calls took."""
        self._began = None
        passed: float = self._timer.timeit(number)
        self.waited = self.waited or self._waits > 0
        return passed if self._waits else min(passed, self._had)

    def _clock(self) -> float:
        # nearest to the calls is the clock, which short ones are timed by; the process's own would only tick, if slowly
        if self._began is None:
            self._began = _waits(), time.thread_time()
            return time.perf_counter()
        now = time.perf_counter()
        waits, had = self._began
        self._had, self._waits = time.thread_time() - had, _waits() - waits
        return now


class Stretch:
    """What this thread does from now on, as `OwnTime` has the time of calls."""

    def __init__(self) -> None:
        self._waits, self._had, self._began = _waits(), time.thread_time(), time.perf_counter()

    def seconds(self) -> float:
        """That it took so far."""
        passed, had = time.perf_counter() - self._began, time.thread_time() - self._had
        return passed if _waits() > self._waits else min(passed, had)


def _waits() -> int:
    """How often this process gave up its core by itself."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
