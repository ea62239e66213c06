"""What every part of housekeeping tells of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Report(Protocol):
    """What was removed in one place; of a dry run, what would be."""

    @property
    def where(self) -> str:
        """The place."""

    @property
    def summary(self) -> str:
        """One line for a person."""

    def gone(self) -> Iterator[tuple[str, str, int]]:
        """Name, reason and bytes of each thing, or kind of things, that was removed."""
