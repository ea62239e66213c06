"""GraphQL connections over sequences: pages, cursors, page information."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CURSOR = "cursor:"


@dataclass(frozen=True)
class PageInfo:
    """Whether there is more, and where it begins."""

    has_next_page: bool
    end_cursor: str | None


@dataclass(frozen=True)
class Connection:
    """A page; `total_count` is the size of the whole."""

    nodes: Sequence[Any]
    page_info: PageInfo
    total_count: int

    @property
    def filtered_count(self) -> int:
        """Timelines only: as many as the type filter leaves."""
        return self.total_count

    @property
    def issue_count(self) -> int:
        """Searches only: as many as are found, shown or not."""
        return self.total_count


def connect(
    items: Sequence[Any],
    wrap: Callable[[Any], Any] = lambda item: item,
    *,
    first: int | None = None,
    after: str | None = None,
) -> Connection:
    """The *first* of *items* behind the cursor *after*, none without a *first*; each shown one passes through *wrap*.

    An unreadable cursor counts as none, as on GitHub.
    """
    low = min(read_cursor(after), len(items))
    high = min(low + (first or 0), len(items))
    nodes = [wrap(item) for item in items[low:high]]
    info = PageInfo(first is not None and high < len(items), write_cursor(high) if nodes else None)
    return Connection(nodes, info, len(items))


def write_cursor(position: int) -> str:
    """The opaque cursor of the item at *position*, counted from 1."""
    return base64.b64encode(f"{CURSOR}{position}".encode()).decode()


def read_cursor(text: str | None) -> int:
    """The position in a cursor, 0 when it is none."""
    try:
        decoded = base64.b64decode(text or "", validate=True).decode()
        return max(0, int(decoded.removeprefix(CURSOR))) if decoded.startswith(CURSOR) else 0
    except (ValueError, binascii.Error):
        return 0
