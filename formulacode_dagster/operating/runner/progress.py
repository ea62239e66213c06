"""Progress of stages. The runner reports to a listener: progress bars in the command line, none elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from formulacode_dagster.models.items import ItemState, Stage


class ProgressListener:
    """Hears of stages and items, from whichever thread runs them; this one makes nothing of it."""

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """A stage begins with so many items to do."""

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str, seconds: float) -> None:
        """One item ended, so many *seconds* after work on it began."""

    def note(self, stage: Stage, text: str) -> None:
        """Something worth a line, as of a build."""

    def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
        """Nothing can proceed for this many *seconds*; reported again every minute with the rest."""

    def announce(self, text: str) -> None:
        """Something about the whole run, as that it waits for another one."""

    def warn(self, stage: Stage, text: str) -> None:
        """Something that works less well than it should, and that a person can mend."""

    def stage_finished(self, stage: Stage) -> None:
        """The stage is over, one way or another."""


def duration(seconds: float) -> str:
    """Return `45 s`, `2 min 5 s` or `1 h 10 min`, rounded up."""
    whole = -int(-seconds // 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


_listener: ProgressListener = ProgressListener()


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
