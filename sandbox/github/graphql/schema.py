"""The schema: GitHub's types and names, as far as they are served."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphql import GraphQLSchema

SDL = Path(__file__).with_name("schema.graphql")


@cache
def schema() -> GraphQLSchema:
    """The executable schema, built once."""
    from graphql import build_schema

    return build_schema(SDL.read_text(encoding="utf-8"), assume_valid_sdl=True)
