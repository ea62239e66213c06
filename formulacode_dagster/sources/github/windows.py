"""A span of time in GitHub's search syntax, how to cut it, and how to join its parts again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Window:
    """`[start, end)` in whole seconds of UTC."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> int:
        """Length in seconds; 1 is the shortest that search can distinguish."""
        return int((self.end - self.start).total_seconds())

    @property
    def qualifier(self) -> str:
        """`A..B` for `merged:`. GitHub includes both ends, hence the second that is taken off."""
        return f"{_stamp(self.start)}..{_stamp(self.end - SECOND)}"

    def holds(self, moment: datetime) -> bool:
        """Return True if *moment* is in this window."""
        return self.start <= moment < self.end

    def split(self, parts: int) -> tuple[Window, ...]:
        """Return at most *parts* adjacent windows of nearly equal length, each at least a second."""
        parts = max(1, min(parts, self.seconds))
        cuts = [self.start + timedelta(seconds=self.seconds * i // parts) for i in range(parts)] + [self.end]
        return tuple(Window(a, b) for a, b in itertools.pairwise(cuts))

    def joined(self, later: Window) -> Window:
        """Return one window of this and *later*, which begins where it ends."""
        return Window(self.start, later.end)


def search_text(repository: str, window: Window) -> str:
    """Return the query for pull requests of *repository* merged in *window*, oldest first, for stable pages.

    One repository only: the meaning of several `repo:` depends on the search behind GitHub's API, any of them or all of
    them
    (https://github.blog/changelog/2025-03-06-github-issues-projects-api-support-for-issues-advanced-search-and-more/).
    """
    return f"repo:{repository} is:pr is:merged merged:{window.qualifier} sort:created-asc"


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
