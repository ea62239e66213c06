"""Column types. They make values storable, and reading independent of the server.

Postgres refuses NUL and lone surrogates in text, and NaN in JSON; GitHub, a model and a build log know no such rule.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, DateTime, Dialect, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import make_url
from sqlalchemy.types import TypeDecorator

_REFUSED = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"
_DIALECT = make_url("postgresql+psycopg://").get_dialect()()


def type_name(column: Column[Any]) -> str:
    """Return the type of *column* as in `information_schema`."""
    return column.type.compile(_DIALECT).lower()


def storable(text: str) -> str:
    """*text* with U+FFFD in place of each character that Postgres refuses."""
    if text.isascii() and "\x00" not in text:
        # bodies of many kB are mostly this, and the search below takes ten times as long
        return text
    return _REFUSED.sub(REPLACEMENT, text) if _REFUSED.search(text) else text


def storable_json(value: Any) -> Any:
    """*value* with every string and number within made storable; tuples become lists."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {storable(key): storable_json(element) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable_json(element) for element in value]
    return value


class StorableText(TypeDecorator[str]):
    """`text` for which every Python string is a value."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Clean a value that is written or compared with."""
        return None if value is None else storable(value)


class StorableJson(TypeDecorator[Any]):
    """`jsonb` for all that a model dumps; NaN and infinity are kept as text, which models read back as numbers."""

    impl = JSONB
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002 - SQLAlchemy's signature
        """Clean every string and number within."""
        return storable_json(value)


class UtcTime(TypeDecorator[datetime]):
    """`timestamptz` read in UTC, whatever the server's time zone: fingerprints and checksums depend on it."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """The same instant, in UTC."""
        return None if value is None else value.astimezone(UTC)
