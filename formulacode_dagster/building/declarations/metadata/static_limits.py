"""Size limit of a value: a hostile script must not be able to fill the memory."""

from __future__ import annotations

import re
from typing import Any

LARGEST = 1_000_000
"""Characters, or entries."""

WIDTH = re.compile(r"\d{4}|\*")
"""Field widths that blow up a format; nothing read here needs one."""


def weight(value: Any) -> int:
    """Characters that *value* takes when it is written out."""
    if isinstance(value, dict):
        return weight(list(value)) + weight(list(value.values()))
    return sum(map(weight, value)) if isinstance(value, list | tuple) else len(value) if isinstance(value, str) else 8


def may_blow_up(base: str, name: str, arguments: list[Any]) -> bool:
    """Return True if the method *name* of *base* could produce a huge value from *arguments*."""
    if name == "replace":
        return len(base) * weight(arguments) > 10 * LARGEST
    if name == "join":
        return len(base) * len(arguments[0]) + weight(arguments) > 10 * LARGEST
    return name == "format" and (WIDTH.search(base) is not None or base.count("{") * weight(arguments) > LARGEST)
