"""Context of a response: the caller, and what it may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import Field

from formulacode_dagster.models.base import Frozen

from .limits import Limits, Resource
from .node_ids import stable_id
from .served_folder import ServedFolder, ServedRepository


class Account(Frozen):
    """Owner of a token. Budgets are counted per login, so that two tokens of one user share theirs."""

    login: str
    scopes: tuple[str, ...] | None = Field(
        default=("read:org", "repo"),
        description="`repo` lets see private repositories; None for a fine-grained token, which tells none",
    )
    is_installation: bool = Field(default=False, description="of an App: it is no user, and has installations")
    forbidden: tuple[str, ...] = Field(default=(), description="owners whose repositories this token may not see")
    refused: tuple[Resource, ...] = Field(default=(), description="what a fine-grained token has no right to")

    @property
    def id(self) -> int:
        """The user's database id."""
        return stable_id("user", self.login.lower())


@dataclass(frozen=True)
class Rate:
    """The current primary budget. `reset` is in seconds since 1970."""

    limit: int
    used: int
    reset: int

    @property
    def remaining(self) -> int:
        """Remaining points."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True)
class Failure:
    """A part of a GraphQL response that fails on purpose, at *path*; `type` is empty if GitHub gives none."""

    path: tuple[str | int, ...]
    type: str
    message: str


@dataclass(frozen=True)
class RequestContext:
    """One admitted call. *account* is None without a token, *url* is the address of this API."""

    folder: ServedFolder
    limits: Limits
    account: Account | None
    url: str
    rates: Callable[[], Mapping[str, Rate]]
    """The caller's current primary budgets."""
    failure: Failure | None = None

    @property
    def sees_private(self) -> bool:
        """True if private repositories exist for the caller."""
        return self.account is not None and "repo" in (self.account.scopes or ())

    def is_forbidden(self, served: ServedRepository) -> bool:
        """Return True if the owner of *served*, an organization, demands more of tokens than the caller's has."""
        return self.account is not None and served.name.partition("/")[0] in self.account.forbidden

    def visible(self, served: ServedRepository | None) -> ServedRepository | None:
        """*served*, unless it is gone or hidden from the caller."""
        if served is None or served.facts.is_gone or (served.facts.is_private and not self.sees_private):
            return None
        return served
