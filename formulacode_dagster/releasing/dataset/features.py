"""Columns as the `datasets` library and the Hub's viewer take them from a card's head.

Without them the library takes the columns of the oldest month for those of all, and refuses every month that has more.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args, get_origin

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.columns import plain_type

_TYPES: dict[Any, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    datetime: "timestamp[us, tz=UTC]",
}


def features(model: type[Frozen]) -> list[dict[str, Any]]:
    """The fields of *model*, each with its name, and `dtype`, `list` or `struct`."""
    return [{"name": name, **_feature(field.annotation)} for name, field in model.model_fields.items()]


def _feature(annotation: Any) -> dict[str, Any]:
    plain = plain_type(annotation)
    if get_origin(plain) is tuple:
        inner = _feature(get_args(plain)[0])
        return {"list": inner.get("dtype") or inner.get("struct") or inner}
    if plain in _TYPES:
        return {"dtype": _TYPES[plain]}
    return {"struct": features(plain)}
