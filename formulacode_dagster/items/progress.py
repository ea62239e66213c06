"""Who watches: the runner tells a listener how far it is. The command line draws bars; elsewhere nobody listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from formulacode_dagster.models.items import ItemState, Stage


class ProgressListener(Protocol):
    """Hears of stages and items, from whichever thread runs them."""

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """A stage begins with so many items to do."""

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str) -> None:
        """One item ended."""

    def note(self, stage: Stage, text: str) -> None:
        """Something worth a line: a wait, a line of a build."""

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

    def stage_finished(self, stage: Stage) -> None:
        """Ignore it."""


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
