"""Size limits of values: a hostile script must not be able to fill the memory, or to keep the reader busy."""

from __future__ import annotations

import re
from typing import Any

LARGEST = 1_000_000
"""Characters, or entries."""

MOST_WEIGHT = 20 * LARGEST
"""Weight of all values that one script may come to, each counted as often as it is evaluated."""

WIDTH = re.compile(r"\d{4}|\*")
"""Field widths that blow up a format; nothing read here needs one."""

_OBJECT = 50
"""Bytes of an object besides its characters or entries."""


def weight(value: Any) -> int:
    """Bytes that *value* takes, about, its parts counted wherever they occur; counted no further than the limit."""
    total, pending = _OBJECT, [value]
    while pending and total <= MOST_WEIGHT:
        item = pending.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, list | tuple | dict):
            # counted before they are looked at: a list may hold itself
            total += _OBJECT * len(item)
            pending.extend(item if total <= MOST_WEIGHT else ())
            pending.extend(item.values() if isinstance(item, dict) else ())
    return total


def may_blow_up(base: str, name: str, arguments: list[Any]) -> bool:
    """Return True if the method *name* of *base* could produce a huge value from *arguments*."""
    if name == "replace":
        return (len(base) + 1) * len(arguments[1]) > 10 * LARGEST
    if name == "join":
        return len(base) * len(arguments[0]) + weight(arguments) > 10 * LARGEST
    return name == "format" and (WIDTH.search(base) is not None or base.count("{") * weight(arguments) > LARGEST)
