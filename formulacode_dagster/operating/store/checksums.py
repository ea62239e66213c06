"""SHA-256 of rows and of values derived from rows: equal content has equal hashes, in any run and at any time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime

from formulacode_dagster.models.base import Frozen

from .column_types import storable, storable_json

_CAME_LATER = frozenset({"source"})
"""Fields that rows were stored without: at their default they leave digests as they were."""


def digest_of(row: Frozen) -> str:
    """SHA-256 of *row* as it is stored: its fields in the order of their names, text cleaned, instants in UTC.

    Each field is hashed as name, number of bytes, and text; values that are neither text nor datetime are JSON.
    """
    whole = hashlib.sha256()
    for name, field in sorted(type(row).model_fields.items()):
        if name in _CAME_LATER and getattr(row, name) == field.default:
            continue
        content = _text(getattr(row, name)).encode()
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()


def checksum_of(parts: Iterable[tuple[int, str]]) -> str:
    """SHA-256 over (key, digest) of many rows, in the order of the key, however they are given."""
    whole = hashlib.sha256()
    for key, digest in sorted(parts):
        whole.update(f"{key} {digest}\n".encode())
    return whole.hexdigest()


def _text(value: object) -> str:
    # bodies of many kB are most of a row, and as JSON they would cost four times as much
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return _JSON.encode(storable_json(value))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _text(value)
    if isinstance(value, Frozen):
        return storable_json(value.model_dump())
    raise TypeError(f"{type(value).__name__} has no canonical form")


_JSON = json.JSONEncoder(default=_plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
