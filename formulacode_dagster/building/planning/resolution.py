"""Questions to the resolver, and its answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

Sorted = Annotated[tuple[str, ...], BeforeValidator(lambda texts: tuple(sorted(set(texts))))]
"""Texts, each once."""


class ResolutionRequest(Frozen):
    """Requirements, and the state of the index in which they are to be pinned. Equal questions, equal answers."""

    requirements: Sorted
    python: str = Field(description="`3.12`")
    exclude_newer: datetime
    constraints: Sorted = Field(default=(), description="constraints on the lock")
    floors: dict[str, datetime] = Field(default_factory=dict, description="later cut-offs of single projects")
    reads_sources: bool = Field(default=False, description="source distributions count; reading one may run its code")
    as_wheels: Sorted = Field(default=(), description="projects of which only wheels count all the same")
    own: str = Field(default="", description="project that is built from the checkout, and in no lock of its own")
    earliest: bool = Field(default=False, description="the lowest versions of direct requirements")
    preferred: str = Field(default="", description="`pylock.toml` whose versions are kept where they can be")


class AbsentRequirement(Frozen):
    """A requirement left out because its project has nothing to offer at the date."""

    requirement: str
    reason: str
    came_later: bool = Field(default=False, description="the index has the project, but only later files")


class Resolution(Frozen):
    """A lock, and how it came about."""

    lock: str
    pylock: str = Field(description="the same pins as PEP 751 `pylock.toml`")
    cut_off: datetime = Field(description="instant as of which the index was read")
    resolver: str = Field(description="`uv 0.13.8`")
    absent: tuple[AbsentRequirement, ...] = ()
    notes: tuple[str, ...] = ()


class Refusal(Frozen):
    """Why requirements have no common solution."""

    what: str
    why: str = ""
    log_tail: str = ""
    blamed: tuple[str, ...] = Field(default=(), description="requirements of which the resolver speaks")
    lacking: tuple[str, ...] = Field(default=(), description="projects that are not there as a wheel")
    late: tuple[str, ...] = Field(default=(), description="projects that came after the cut-off")
    unbuildable: tuple[str, ...] = Field(default=(), description="projects whose source distribution does not build")


class Unsolvable(ItemFailure):
    """The requirements have no common solution."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        remedy = "The log's tail has the resolver's own words"
        super().__init__(FailureKind.LOCK, refusal.what, why=refusal.why, remedy=remedy, log_tail=refusal.log_tail)
