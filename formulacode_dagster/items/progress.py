"""Who watches: the runner tells a listener how far it is. The command line draws bars; elsewhere nobody listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from formulacode_dagster.models.items import ItemState, Stage

WORTH_A_LINE_SECONDS = 5.0
LINE_SECONDS = 60.0


class ProgressListener(Protocol):
    """Hears of stages and items, from whichever thread runs them."""

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """A stage begins with so many items to do."""

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str) -> None:
        """One item ended."""

    def note(self, stage: Stage, text: str) -> None:
        """Something worth a line, as of a build."""

    def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
        """Nothing can go on for so many *seconds*; told again every minute with what is left."""

    def warn(self, stage: Stage, text: str) -> None:
        """Something that works less well than it should, and that a person can mend."""

    def stage_finished(self, stage: Stage) -> None:
        """The stage is over, one way or another."""


class Silence:
    """The listener when nobody listens."""

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """Ignore it."""

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str) -> None:
        """Ignore it."""

    def note(self, stage: Stage, text: str) -> None:
        """Ignore it."""

    def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
        """Ignore it."""

    def warn(self, stage: Stage, text: str) -> None:
        """Ignore it."""

    def stage_finished(self, stage: Stage) -> None:
        """Ignore it."""


class WaitLines:
    """Waits for a log: a line when one begins that is long enough to wonder about, and one for every minute of it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: dict[str, float] = {}

    def waiting(self, reason: str, seconds: float) -> None:
        """Say *reason* with what is left, unless the same was said within the minute."""
        now = time.monotonic()
        if seconds >= WORTH_A_LINE_SECONDS and now - self._said.get(reason, -LINE_SECONDS) >= LINE_SECONDS * 0.9:
            self._said[reason] = now
            until = time.strftime("%H:%M:%S UTC", time.gmtime(time.time() + seconds))
            self._say(f"waiting {duration(seconds)}, until {until}: {reason}")


class AlsoLogged:
    """Tells *listener* everything, and a log what a person who reads it would otherwise miss: waits and warnings."""

    def __init__(self, listener: ProgressListener, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self._listener = listener
        self._lines = WaitLines(say)
        self._warn = warn

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """Hand on."""
        self._listener.stage_started(stage, month, pending, already_done)

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str) -> None:
        """Hand on."""
        self._listener.item_finished(stage, item, state, reason)

    def note(self, stage: Stage, text: str) -> None:
        """Hand on."""
        self._listener.note(stage, text)

    def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
        """Hand on, and log."""
        self._listener.waiting(stage, reason, seconds)
        self._lines.waiting(reason, seconds)

    def warn(self, stage: Stage, text: str) -> None:
        """Hand on, and log."""
        self._listener.warn(stage, text)
        self._warn(text)

    def stage_finished(self, stage: Stage) -> None:
        """Hand on."""
        self._listener.stage_finished(stage)


def duration(seconds: float) -> str:
    """`45 s`, `2 min 5 s`, `1 h 10 min`: rounded up, so that nothing is over before it is said to be."""
    whole = -int(-seconds // 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


_listener: ProgressListener = Silence()


def listener() -> ProgressListener:
    """The listener of this process."""
    return _listener


@contextmanager
def listening(to: ProgressListener) -> Iterator[None]:
    """Make *to* the listener for the length of a `with` block."""
    global _listener
    before, _listener = _listener, to
    try:
        yield
    finally:
        _listener = before
