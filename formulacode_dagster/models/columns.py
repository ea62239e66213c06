"""Columns of a table, derived from the model of its rows: names, types and meanings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from .base import Frozen


@dataclass(frozen=True)
class TableColumn:
    """One column; its type is a word of the system that has the table."""

    name: str
    type: str
    description: str


def columns_of(*models: type[Frozen], type_of: Callable[[str, Any], str]) -> tuple[TableColumn, ...]:
    """The fields of *models* as columns, each name once; *type_of* (name, plain type) names their types.

    Plain is a type without `None`, and `str` for an enum.
    """
    fields = {name: field for model in reversed(models) for name, field in model.model_fields.items()}
    ordered = dict.fromkeys(name for model in models for name in model.model_fields)
    return tuple(
        TableColumn(name, type_of(name, plain_type(fields[name].annotation)), fields[name].description or "")
        for name in ordered
    )


def postgres_type(plain: Any) -> str:
    """Return the Postgres type of a field, as `information_schema` names it; composite values are `jsonb`."""
    return _POSTGRES.get(plain, "jsonb")


_POSTGRES: dict[Any, str] = {
    str: "text",
    bool: "boolean",
    int: "bigint",
    float: "double precision",
    datetime: "timestamp with time zone",
}


def plain_type(annotation: Any) -> Any:
    """*annotation* without `None`; `str` for an enum."""
    if get_origin(annotation) is UnionType:
        (annotation,) = (argument for argument in get_args(annotation) if argument is not NoneType)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return str
    return annotation
