"""Number of results that one search shows, fewer than it counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchLimits:
    """Maximum results of a search, and page sizes."""

    shown: int = 1_000
    """https://docs.github.com/en/rest/search/search#about-search: more results than these are never shown."""
    page: int = 100
    """GitHub's largest page, and as many pull requests as it answers within its 10 seconds."""

    @property
    def part(self) -> int:
        """Aimed-at size of a part when a window is cut: merges are not spread evenly."""
        return self.shown * 4 // 5


PUBLIC = SearchLimits()
"""Limits of the public GitHub."""
