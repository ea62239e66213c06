"""GraphQL connections over sequences: pages, cursors, page information."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any

CURSOR = "cursor:"


def connect(
    items: Sequence[Any],
    wrap: Callable[[Any], Any] = lambda item: item,
    *,
    first: int | None = None,
    after: str | None = None,
) -> dict[str, Any]:
    """The *first* of *items* behind the cursor *after*, none without a *first*; each shown one passes through *wrap*.

    An unreadable cursor counts as none, as on GitHub. The count of the whole is `filteredCount` in timelines.
    """
    low = min(read_cursor(after), len(items))
    high = min(low + (first or 0), len(items))
    nodes = [wrap(item) for item in items[low:high]]
    return {
        "nodes": nodes,
        "pageInfo": {
            "hasNextPage": first is not None and high < len(items),
            "endCursor": write_cursor(high) if nodes else None,
        },
        "totalCount": len(items),
        "filteredCount": len(items),
    }


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
