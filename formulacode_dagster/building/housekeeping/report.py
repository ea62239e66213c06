"""The report of every part of housekeeping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Report(Protocol):
    """Removals in one place; for a dry run, planned removals."""

    @property
    def where(self) -> str:
        """The place."""

    @property
    def summary(self) -> str:
        """One line for a person."""

    def gone(self) -> Iterator[tuple[str, str, int]]:
        """Name, reason and bytes of each thing, or kind of things, that was removed."""
