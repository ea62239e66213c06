"""Base classes of the models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SHOWN = 5
"""Parts of a list that a message names."""


class Frozen(BaseModel):
    """An immutable record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def first_fault(error: ValidationError) -> str:
    """Return the first problem that *error* names: location and message."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def listed(parts: Sequence[str], *, shown: int = SHOWN, between: str = ", ") -> str:
    """Return the first of *parts*, at most *shown*, and the number of the rest."""
    more = f" and {len(parts) - shown} more" if len(parts) > shown else ""
    return between.join(parts[:shown]) + more


class MonthRow(Frozen):
    """A row of one month. The descriptions of its fields document the columns of its table or view."""

    month: str = Field(description="month of the merge in UTC, `2026-02`")


class PullRequestRow(MonthRow):
    """A row about one pull request of a month."""

    repository_id: int = Field(description="GitHub's id of the repository; negative: unknown")
    number: int = Field(description="number of the pull request")


ProgressReporter = Callable[[str], None]
"""Receives one line for people at a time."""
