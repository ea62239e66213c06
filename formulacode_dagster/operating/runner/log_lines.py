"""Log lines of a stage: one for each slow item, and for waits and warnings."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.cancellation.clock import SYSTEM_CLOCK, Clock

from .progress import ProgressListener, duration

WORTH_A_LINE_SECONDS = 5.0
LINE_SECONDS = 60.0
LONG_STAGES = frozenset({Stage.ENVIRONMENTS, Stage.IMAGES, Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES, Stage.GRADINGS})
"""Every item of these has a line: it took its time."""
LINES_PER_REASON = 20
"""In other stages, thousands of items end within seconds, most of them for the same few reasons."""

SayOfItem = Callable[[str, str], None]
"""A line, and its item."""


class WaitLines:
    """Waits for a log: a line when one begins that is long enough to wonder about, and one for every minute of it."""

    def __init__(self, say: ProgressReporter, clock: Clock = SYSTEM_CLOCK) -> None:
        self._say = say
        self._clock = clock
        self._said: dict[str, float] = {}

    def waiting(self, reason: str, seconds: float) -> None:
        """Log *reason* with the remaining time, unless the same was logged within the last minute."""
        now = self._clock.time()
        if seconds >= WORTH_A_LINE_SECONDS and now - self._said.get(reason, 0.0) >= LINE_SECONDS * 0.9:
            self._said[reason] = now
            until = time.strftime("%H:%M:%S UTC", time.gmtime(now + seconds))
            self._say(f"waiting {duration(seconds)}, until {until}: {reason}")


class ItemLines:
    """Items for a log: each of a long stage; elsewhere so many of each way to end, and how many more there were."""

    def __init__(self, say: SayOfItem) -> None:
        self._say = say
        self._ended: Counter[tuple[ItemState, str]] = Counter()

    def finished(self, stage: Stage, item: str, state: ItemState, reason: str, seconds: float) -> None:
        """Say how *item* ended, unless the like was said often enough."""
        self._ended[state, reason] += 1
        if stage in LONG_STAGES or self._ended[state, reason] <= LINES_PER_REASON:
            self._say(f"{item}: {_words(state, reason)} after {seconds:.1f} s", item)

    def end(self, stage: Stage) -> None:
        """Log how many were left out, and reset the count for the next stage."""
        for (state, reason), count in self._ended.items():
            if stage not in LONG_STAGES and count > LINES_PER_REASON:
                self._say(f"{count - LINES_PER_REASON:,} more: {_words(state, reason)}", "")
        self._ended.clear()


class AlsoLogged(ProgressListener):
    """Forwards everything to *listener*, and logs what a reader of the log needs."""

    def __init__(
        self,
        listener: ProgressListener,
        say: ProgressReporter,
        warn: ProgressReporter,
        say_of_item: SayOfItem | None = None,
    ) -> None:
        self._listener = listener
        self._waits = WaitLines(say)
        self._items = ItemLines(say_of_item or (lambda text, _: say(text)))
        self._warn = warn

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """Hand on."""
        self._listener.stage_started(stage, month, pending, already_done)

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str, seconds: float) -> None:
        """Hand on, and log."""
        self._listener.item_finished(stage, item, state, reason, seconds)
        self._items.finished(stage, item, state, reason, seconds)

    def note(self, stage: Stage, text: str) -> None:
        """Hand on."""
        self._listener.note(stage, text)

    def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
        """Hand on, and log."""
        self._listener.waiting(stage, reason, seconds)
        self._waits.waiting(reason, seconds)

    def warn(self, stage: Stage, text: str) -> None:
        """Hand on, and log."""
        self._listener.warn(stage, text)
        self._warn(text)

    def stage_finished(self, stage: Stage) -> None:
        """Hand on, and log."""
        self._listener.stage_finished(stage)
        self._items.end(stage)


def _words(state: ItemState, reason: str) -> str:
    return f"{state} ({reason})" if reason else state.value
