"""A tracked repository."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import MonthRow

UNKNOWN_STARS = -1
UNKNOWN_LANGUAGE = "unknown"
"""Value for sources without an API; a repository is never judged by an unknown value."""


class RepositoryState(StrEnum):
    """State of the repository on GitHub."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    FORK = "fork"
    EMPTY = "empty"
    PRIVATE = "private"
    VANISHED = "vanished"


class Repository(MonthRow):
    """A repository that keeps an asv suite, as of a month, by GitHub id."""

    id: int = Field(description="GitHub's database id; survives renames and transfers; negative: unknown")
    node_id: str = Field(description="GitHub's id of it in GraphQL")
    full_name: str = Field(description="`owner/repo` as of the month's first intake; until then, the current name")
    aliases: tuple[str, ...] = Field(default=(), description="names under which it was also found")
    state: RepositoryState = Field(description="active, archived, fork, empty, private or vanished")
    archived_at: datetime | None = Field(
        default=None, description="start of its archived state; None: unknown, or not archived"
    )
    default_branch: str = Field(default="", description="as of intake; empty: unknown")
    stars: int = Field(default=0, description="as of intake; -1: unknown")
    language: str = Field(default="", description="main one; empty: there is none; `unknown`: not reported")
    description: str = Field(default="", description="one line, as of intake")
    size_kb: int = Field(default=0, description="of the git repository, as GitHub reports it")
    config_path: str = Field(description="path of the asv configuration by which it was found; empty: by its name")
