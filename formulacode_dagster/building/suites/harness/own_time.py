"""Time of a call by itself, on a core that other processes use as well."""

from __future__ import annotations

import resource
import time
import timeit
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .suite import Timer


def own_time(timer: Timer) -> Timer:
    """*timer*, less the time others took of the core; unchanged if its author chose the clock."""
    return OwnTime(timer) if getattr(timer, "timer", None) is timeit.default_timer else timer


class OwnTime:
    """Times as `timeit.Timer` does, by the clock.

    Calls that never waited voluntarily, for a file, a child or a lock, lost the core only to others: their time is the
    time they had it.
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
    """Activity of this thread from now on; `OwnTime` corrects the time of calls with it."""

    def __init__(self) -> None:
        self._waits, self._had, self._began = _waits(), time.thread_time(), time.perf_counter()

    def seconds(self) -> float:
        """Its CPU time so far."""
        passed, had = time.perf_counter() - self._began, time.thread_time() - self._had
        return passed if _waits() > self._waits else min(passed, had)


def _waits() -> int:
    """Number of its voluntary context switches so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
