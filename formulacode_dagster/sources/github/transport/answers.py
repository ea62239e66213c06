"""Answers of GitHub, after limits and transient faults were handled."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

ASKED_AGAIN = frozenset({"labels", "closingIssuesReferences", "userContentEdits"})
"""Connections that are requested separately if they are null."""


class Resource(StrEnum):
    """The budgets that GitHub counts apart, named as in `x-ratelimit-resource`."""

    CORE = "core"
    CODE_SEARCH = "code_search"
    GRAPHQL = "graphql"

    @classmethod
    def of_path(cls, path: str) -> Resource:
        """The budget that a REST *path* draws on."""
        return cls.CODE_SEARCH if path.startswith("/search/code") else cls.CORE


@dataclass(frozen=True)
class GraphQLError:
    """One entry of `errors`, in GitHub's own words."""

    type: str
    message: str
    path: tuple[str | int, ...] = ()

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> GraphQLError:
        """Create it from the JSON object; missing fields stay empty."""
        return cls(
            type=str(raw.get("type") or ""),
            message=str(raw.get("message") or ""),
            path=tuple(raw.get("path") or ()),
        )

    def __str__(self) -> str:
        where = ".".join(str(part) for part in self.path)
        return f"{self.type or 'error'}{f' at {where}' if where else ''}: {self.message}"


@dataclass(frozen=True)
class GraphQLAnswer:
    """`data`, and the errors that concern only parts of it: each has a path."""

    data: Mapping[str, Any]
    errors: tuple[GraphQLError, ...] = ()
    seconds: float = 0.0
    """Time until it came."""

    def words(self, *path: str | int) -> str:
        """Return GitHub's messages about *path* and below it."""
        return "; ".join(str(error) for error in self.errors if error.path[: len(path)] == path)

    def missing(self, *path: str | int) -> bool:
        """Return True if GitHub reports NOT_FOUND at exactly *path*."""
        return any(error.type == "NOT_FOUND" and error.path == path for error in self.errors)

    def sound(self) -> GraphQLAnswer:
        """The same, but null around every error: a field that failed is null too, and would pass for one that is empty.

        Null propagates to the nearest element that readers request again: an item of a list, a connection of
        ASKED_AGAIN, or a field of the top level.
        """
        data = copy.deepcopy(dict(self.data)) if self.errors else self.data
        for error in self.errors:
            _make_null(data, _asked_again(error.path))
        return replace(self, data=data)


def _asked_again(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    for length in range(len(path), 1, -1):
        if isinstance(path[length - 1], int) or path[length - 1] in ASKED_AGAIN:
            return path[:length]
    return path[:1]


def _make_null(value: Any, path: tuple[str | int, ...]) -> None:
    for part in path[:-1]:
        value = _part(value, part)
    if path and _part(value, path[-1]) is not None:
        value[path[-1]] = None


def _part(value: Any, part: str | int) -> Any:
    if isinstance(part, int):
        return value[part] if isinstance(value, list) and part < len(value) else None
    return value.get(part) if isinstance(value, dict) else None


@dataclass(frozen=True)
class RestAnswer:
    """A successful REST answer. `data` is parsed JSON, or text when another media type was asked for."""

    status: int
    data: Any
    next_page: str = ""
    moved_to: str = ""
    """Target of a 301; empty if the path answered itself."""
