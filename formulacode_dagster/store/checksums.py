"""SHA-256 of rows and of what is made of rows: the same for the same content, whatever run or time stored it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime

from formulacode_dagster.models.base import Frozen

from .column_types import storable_json


def digest_of(row: Frozen) -> str:
    """SHA-256 of *row* as it is stored: its fields as JSON, by name, text cleaned, instants in UTC."""
    plain = json.dumps(
        storable_json(row.model_dump()), default=_plain, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(plain.encode()).hexdigest()


def checksum_of(parts: Iterable[tuple[int, str]]) -> str:
    """SHA-256 over (key, digest) of many rows, in the order of the key, however they are given."""
    whole = hashlib.sha256()
    for key, digest in sorted(parts):
        whole.update(f"{key} {digest}\n".encode())
    return whole.hexdigest()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} has no canonical form")
