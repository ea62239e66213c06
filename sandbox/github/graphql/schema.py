"""The schema: GitHub's types and names, our objects behind them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .query import Query

if TYPE_CHECKING:
    from graphql import GraphQLAbstractType, GraphQLResolveInfo, GraphQLSchema

SDL = Path(__file__).with_name("schema.graphql")


@cache
def schema() -> GraphQLSchema:
    """The executable schema, built once."""
    from graphql import GraphQLScalarType, build_schema, is_abstract_type

    built = build_schema(SDL.read_text(encoding="utf-8"), assume_valid_sdl=True)
    for named in built.type_map.values():
        if is_abstract_type(named):
            cast("GraphQLAbstractType", named).resolve_type = lambda value, _info, _type: str(value.typename)
        elif isinstance(named, GraphQLScalarType) and named.name == "DateTime":
            named.serialize = _stamp  # type: ignore[method-assign]
    return built


def resolve(source: Any, info: GraphQLResolveInfo, **arguments: Any) -> Any:
    """A field's value: the attribute of the same name in snake case, called when it is a method."""
    holder = Query() if source is None else source
    value = getattr(holder, snake(info.field_name))
    return value(info, **arguments) if isinstance(value, Callable) else value  # type: ignore[arg-type]


@cache
def snake(name: str) -> str:
    """A field's *name* in snake case."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", name)


def _stamp(value: Any) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value)
