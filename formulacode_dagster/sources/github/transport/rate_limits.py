"""The state of GitHub's rate limits: one small document that all clients of this machine share, without any token."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from .answers import Resource
from .pacing import Pace

SAME_WINDOW_SECONDS = 5.0
"""Reset times of different answers differ by rounding and latency."""
SCARCE = 0.1
"""Share of a budget below which the rest is spread over the time left, since others use it too."""


@dataclass
class PrimaryLimit:
    """A primary limit of one user; `remaining` and `limit` are None until an answer contains them."""

    remaining: int | None = None
    limit: int | None = None
    reset: float = 0.0
    spread_until: float = 0.0

    def refresh(self, now: float) -> None:
        """Forget the counts of an expired window."""
        if self.reset and self.reset <= now:
            self.remaining, self.reset, self.spread_until = None, 0.0, 0.0

    def free_at(self) -> float:
        """When the next point may be spent; in the past when it may be spent now."""
        return self.reset if self.remaining is not None and self.remaining < 1 else self.spread_until

    def spend(self, now: float) -> None:
        """One point is about to be spent."""
        if self.remaining is None:
            return
        self.remaining = max(0, self.remaining - 1)
        if self.limit and self.remaining <= self.limit * SCARCE and self.reset > now:
            self.spread_until = now + (self.reset - now) / (self.remaining + 1)

    def learn(self, *, remaining: int, limit: int | None, reset: float) -> None:
        """Update from an answer's headers. Answers arrive out of order: within a window, less is newer."""
        self.limit = self.limit if limit is None else limit
        if self.remaining is not None and abs(reset - self.reset) <= SAME_WINDOW_SECONDS:
            # taking the number as it is would let a late answer give back what was spent since
            self.remaining = min(self.remaining, remaining)
        elif reset > self.reset:
            self.remaining, self.reset, self.spread_until = remaining, reset, 0.0


@dataclass
class User:
    """The user for whom GitHub counts: the owner of a token, or the token itself while its owner is unknown."""

    budgets: dict[Resource, PrimaryLimit] = field(default_factory=dict)
    blocked_until: float = 0.0

    def budget(self, resource: Resource) -> PrimaryLimit:
        """The primary limit of *resource*."""
        return self.budgets.setdefault(resource, PrimaryLimit())

    def merge(self, other: User) -> None:
        """Merge *other*, which turned out to be the same user: the worse of both counts."""
        self.blocked_until = max(self.blocked_until, other.blocked_until)
        for resource, budget in other.budgets.items():
            if budget.remaining is not None:
                self.budget(resource).learn(remaining=budget.remaining, limit=budget.limit, reset=budget.reset)


@dataclass
class RateLimits:
    """The document: the pace, the users with their budgets, and the requests in flight by process."""

    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    pace: Pace = field(default_factory=Pace)
    users: dict[str, User] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    under_way: dict[str, int] = field(default_factory=dict)
    used_at: float = 0.0

    def key(self, secret: str) -> str:
        """The name of a token or login in this document, from which it cannot be found out."""
        return _key(self.salt, secret)

    def user(self, secret: str) -> User:
        """Return the user to whom the token belongs."""
        key = self.key(secret)
        return self.users.setdefault(self.owners.get(key, key), User())

    def learn_owner(self, secret: str, login: str) -> None:
        """The token belongs to the user *login*: GitHub counts all tokens of a user together."""
        key, owner = self.key(secret), self.key(f"login {login.lower()}")
        self.owners[key] = owner
        user = self.users.setdefault(owner, User())
        alone = self.users.pop(key, None)
        if alone is not None:
            user.merge(alone)


@lru_cache(maxsize=256)
def _key(salt: str, secret: str) -> str:
    return blake2b(secret.encode(), key=bytes.fromhex(salt), digest_size=12).hexdigest()
