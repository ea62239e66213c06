"""GraphQL connections over sequences: slices, cursors, page information."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CURSOR = "cursor:"


@dataclass(frozen=True)
class Edge:
    """A node and where it stands."""

    cursor: str
    node: Any


@dataclass(frozen=True)
class PageInfo:
    """Where a page begins and ends, and whether there is more."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@dataclass(frozen=True)
class Connection:
    """A page; `total_count` is the size of the whole."""

    nodes: Sequence[Any]
    edges: Sequence[Edge]
    page_info: PageInfo
    total_count: int

    @property
    def filtered_count(self) -> int:
        """Timelines only: as many as the type filter leaves."""
        return self.total_count

    @property
    def page_count(self) -> int:
        """Timelines only: as many as this page holds."""
        return len(self.nodes)

    @property
    def updated_at(self) -> Any:
        """Timelines only: the newest entry on the page."""
        return max((node.created_at for node in self.nodes), default="1970-01-01T00:00:00Z")


def connect(
    items: Sequence[Any], arguments: dict[str, Any], wrap: Callable[[Any], Any] = lambda item: item
) -> Connection:
    """The page of *items* that `first`, `after`, `last` and `before` ask for; each shown item passes through *wrap*.

    An unreadable cursor counts as none, as on GitHub.
    """
    low, high = 0, len(items)
    after, before = read_cursor(arguments.get("after")), read_cursor(arguments.get("before"))
    if after is not None:
        low = min(after, high)
    if before is not None:
        high = max(low, min(before - 1, high))
    first, last = arguments.get("first"), arguments.get("last")
    if first is not None:
        high = min(high, low + first)
    elif last is not None:
        low = max(low, high - last)
    else:
        high = low
    nodes = [wrap(item) for item in items[low:high]]
    edges = [Edge(cursor(low + index + 1), node) for index, node in enumerate(nodes)]
    bounded = first is not None or last is not None
    info = PageInfo(
        has_next_page=bounded and high < len(items),
        has_previous_page=low > 0,
        start_cursor=edges[0].cursor if edges else None,
        end_cursor=edges[-1].cursor if edges else None,
    )
    return Connection(nodes, edges, info, len(items))


def cursor(position: int) -> str:
    """The opaque cursor of the item at *position*, counted from 1."""
    return base64.b64encode(f"{CURSOR}{position}".encode()).decode()


def read_cursor(text: str | None) -> int | None:
    """The position in a cursor, None when it is none."""
    if not text:
        return None
    try:
        decoded = base64.b64decode(text, validate=True).decode()
        return int(decoded.removeprefix(CURSOR)) if decoded.startswith(CURSOR) else None
    except (ValueError, binascii.Error, UnicodeDecodeError):
        return None
