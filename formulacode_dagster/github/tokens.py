"""The tokens, and what each has left.

A token is spoken of by its position; its text leaves this module in a header and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from formulacode_dagster.models.errors import ConfigurationError

from .answers import Resource
from .clock import Clock

SETTING = "GH_TOKENS"
SAME_WINDOW_SECONDS = 5.0
"""Resets told by different answers differ by rounding and by the way of the answer."""


@dataclass
class _Budget:
    remaining: float = float("inf")
    reset: float = 0.0


@dataclass
class _Token:
    position: int
    secret: str = field(repr=False)
    budgets: dict[Resource, _Budget] = field(default_factory=dict)
    blocked_until: float = 0.0
    aside: str = ""
    uses: int = 0

    def budget(self, resource: Resource) -> _Budget:
        return self.budgets.setdefault(resource, _Budget())


@dataclass(frozen=True)
class TokenState:
    """What a person may know of a token."""

    name: str
    remaining: dict[Resource, int]
    set_aside: str


@dataclass(frozen=True)
class Lease:
    """A token chosen for one request."""

    name: str
    position: int
    authorization: str | None = field(repr=False)


class TokenPool:
    """Chooses, per resource, the token with most left; without tokens, one anonymous place."""

    def __init__(self, tokens: Sequence[str], clock: Clock) -> None:
        secrets = list(dict.fromkeys(token.strip() for token in tokens if token.strip()))
        if any(not secret.isascii() or not secret.isprintable() or " " in secret for secret in secrets):
            raise ConfigurationError(
                f"{SETTING} holds something that is not a token",
                remedy="Set it to tokens separated by commas, without quotes or spaces",
            )
        self.anonymous = not secrets
        self._clock = clock
        self._tokens = [_Token(position, secret) for position, secret in enumerate(secrets or [""])]

    def lease(self, resource: Resource) -> Lease | float:
        """The best token for *resource*, or the seconds to wait until one has something left.

        Raises ConfigurationError when every token was set aside.
        """
        now = self._clock.time()
        alive = [token for token in self._tokens if not token.aside]
        if not alive:
            reasons = "; ".join(f"{self._name(token)}: {token.aside}" for token in self._tokens)
            raise ConfigurationError(
                f"GitHub accepts none of the tokens in {SETTING}", why=reasons, remedy="Replace them by valid ones"
            )
        for token in alive:
            budget = token.budget(resource)
            if budget.reset and budget.reset <= now:
                token.budgets[resource] = _Budget()
        ready = [token for token in alive if token.blocked_until <= now and token.budget(resource).remaining >= 1]
        if not ready:
            return min(self._free_at(token, resource) for token in alive) - now
        best = max(ready, key=lambda token: (token.budget(resource).remaining, -token.uses, -token.position))
        best.budget(resource).remaining -= 1
        best.uses += 1
        secret = best.secret
        return Lease(self._name(best), best.position, f"Bearer {secret}" if secret else None)

    @staticmethod
    def _free_at(token: _Token, resource: Resource) -> float:
        budget = token.budget(resource)
        return max(token.blocked_until, budget.reset if budget.remaining < 1 else 0.0)

    def learn(self, lease: Lease, resource: Resource, *, remaining: int, reset: float) -> None:
        """Take over what an answer's headers say. Answers come out of order: within a window, less is newer."""
        budget = self._tokens[lease.position].budget(resource)
        if abs(reset - budget.reset) <= SAME_WINDOW_SECONDS:
            # Taking the number as it is would let a late answer give back what was spent since.
            budget.remaining = min(budget.remaining, remaining)
        elif reset > budget.reset:
            budget.remaining, budget.reset = remaining, reset

    def exhaust(self, lease: Lease, resource: Resource, *, seconds: float) -> None:
        """GitHub says that the primary budget is used up for *seconds* more."""
        self._tokens[lease.position].budgets[resource] = _Budget(0, self._clock.time() + seconds)

    def block(self, lease: Lease, *, seconds: float) -> None:
        """Leave the token alone for *seconds*, for every resource: secondary limits are per user."""
        token = self._tokens[lease.position]
        token.blocked_until = max(token.blocked_until, self._clock.time() + seconds)

    def set_aside(self, lease: Lease, reason: str) -> None:
        """Never choose the token again; *reason* is GitHub's answer."""
        self._tokens[lease.position].aside = reason

    def states(self) -> tuple[TokenState, ...]:
        """Every token by name: what it has left, where known, and why it was set aside."""
        return tuple(
            TokenState(
                self._name(token),
                {
                    resource: int(budget.remaining)
                    for resource, budget in token.budgets.items()
                    if budget.remaining != float("inf")
                },
                token.aside,
            )
            for token in self._tokens
        )

    def _name(self, token: _Token) -> str:
        if self.anonymous:
            return "anonymous access"
        return f"token {token.position + 1} of {len(self._tokens)}"
