"""What a benchmark returned, in a form in which two runs can be compared."""

from __future__ import annotations

import hashlib
from typing import Any

DIGITS = 6
"""Significant ones that numbers are compared by: what is faster may add in another order."""
MOST_ELEMENTS = 100_000
"""Of an array; of a larger one, as many are compared, evenly spread."""


def digest(value: object) -> str:
    """Hash over *value*; `` for None, and for what cannot be compared: objects without a plain form."""
    if value is None:
        return ""
    try:
        return hashlib.sha256(_plain(value).encode()).hexdigest()
    except Exception:  # noqa: BLE001 - reading a package's own objects may raise anything
        return ""


def _plain(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return repr(value)
    if isinstance(value, (float, complex)):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_plain, value)))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{_plain(key)}: {_plain(each)}' for key, each in value.items()))}}}"
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        flat = value.ravel()
        return f"{value.shape} {_plain(flat[:: 1 + flat.size // MOST_ELEMENTS].tolist())}"
    if hasattr(value, "to_numpy"):
        return _plain(value.to_numpy())
    raise TypeError(type(value).__name__)
