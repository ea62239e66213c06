"""The tokens, and which of them asks next.

Messages refer to a token by its position; its text leaves this module only in a header, and as a keyed hash in the
stored limits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from formulacode_dagster.models.errors import ConfigurationError

from .answers import Resource
from .rate_limits import RateLimits

SETTING = "GH_TOKENS"


@dataclass
class _Token:
    position: int
    secret: str = field(repr=False)
    set_aside: str = ""
    unfit: dict[Resource, str] = field(default_factory=dict)
    remaining: dict[Resource, int] = field(default_factory=dict)
    uses: int = 0


@dataclass(frozen=True)
class TokenState:
    """Public information about a token."""

    name: str
    remaining: dict[Resource, int]
    set_aside: str
    unfit_for: dict[Resource, str] = field(default_factory=dict)
    """GitHub's words, for each resource that the token has no right to."""


@dataclass(frozen=True)
class Lease:
    """A token chosen for one request."""

    name: str
    position: int
    authorization: str | None = field(repr=False)


@dataclass(frozen=True)
class Pause:
    """Why nothing may be asked now, and for how many seconds."""

    reason: str
    seconds: float


class NoOtherTokenError(Exception):
    """Every token left was refused this very request."""


class TokenPool:
    """Chooses, per resource, the token with most left; without tokens, one anonymous place.

    Raises ConfigurationError, naming the setting, for a text that cannot be a token.
    """

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        secrets = list(dict.fromkeys(token.strip() for token in tokens if token.strip()))
        if any(not secret.isascii() or not secret.isprintable() or " " in secret for secret in secrets):
            raise ConfigurationError(
                f"{SETTING} contains something other than a token",
                remedy="Set it to tokens separated by commas, without quotes or spaces",
            )
        self.anonymous = not secrets
        self._tokens = [_Token(position, secret) for position, secret in enumerate(secrets or [""])]

    def choose(
        self, limits: RateLimits, resource: Resource, now: float, *, without: Collection[int] = ()
    ) -> Lease | Pause:
        """The token that asks next: the one with most left.

        Those at the positions *without* were refused this very request. Raises NoOtherTokenError when none but these
        is left, ConfigurationError when every token was set aside.
        """
        fit = self._fit(resource, without)
        users = {token.position: limits.user(token.secret) for token in fit}
        for user in users.values():
            user.budget(resource).refresh(now)
        ready = [
            token
            for token in fit
            if users[token.position].blocked_until <= now and users[token.position].budget(resource).free_at() <= now
        ]
        if not ready:
            return min((self._pause(limits, token, resource, now) for token in fit), key=lambda pause: pause.seconds)

        def rank(token: _Token) -> tuple[float, int, int]:
            remaining = users[token.position].budget(resource).remaining
            left = float("inf") if remaining is None else remaining
            return left, -token.uses, -token.position

        best = max(ready, key=rank)
        return Lease(self._name(best), best.position, f"Bearer {best.secret}" if best.secret else None)

    def spend(self, limits: RateLimits, lease: Lease, resource: Resource, now: float) -> None:
        """The request of *lease* goes out."""
        token = self._tokens[lease.position]
        token.uses += 1
        limits.user(token.secret).budget(resource).spend(now)

    def has_other(self, resource: Resource, without: Collection[int]) -> bool:
        """Return True if a token outside the positions *without* is left for *resource*."""
        return any(token.position not in without for token in self._tokens if self._is_fit(token, resource))

    def learn(
        self,
        limits: RateLimits,
        lease: Lease,
        resource: Resource,
        *,
        remaining: int,
        reset: float,
        limit: int | None = None,
    ) -> None:
        """Update from an answer's headers about *resource*; *reset* is in seconds since the epoch."""
        token = self._tokens[lease.position]
        budget = limits.user(token.secret).budget(resource)
        budget.learn(remaining=remaining, limit=limit, reset=reset)
        token.remaining[resource] = budget.remaining or 0

    def exhaust(self, limits: RateLimits, lease: Lease, resource: Resource, *, until: float) -> None:
        """GitHub says that the primary limit is used up *until* then."""
        token = self._tokens[lease.position]
        budget = limits.user(token.secret).budget(resource)
        budget.remaining, budget.reset = 0, until
        token.remaining[resource] = 0

    def block(self, limits: RateLimits, lease: Lease, *, until: float) -> None:
        """Avoid the token's user *until* then, for every resource: secondary limits are per user."""
        user = limits.user(self._tokens[lease.position].secret)
        user.blocked_until = max(user.blocked_until, until)

    def learn_owner(self, limits: RateLimits, position: int, login: str) -> None:
        """The token at *position* belongs to the user *login*; tokens of a user share their limits."""
        limits.learn_owner(self._tokens[position].secret, login)

    def set_aside(self, lease: Lease, reason: str) -> bool:
        """Never choose the token again; *reason* is GitHub's answer. Whether that is news."""
        token = self._tokens[lease.position]
        is_new, token.set_aside = not token.set_aside, reason
        return is_new

    def set_aside_for(self, position: int, resource: Resource, reason: str) -> bool:
        """Never choose the token for *resource* again; *reason* is GitHub's answer. Whether that is news."""
        unfit = self._tokens[position].unfit
        is_new = resource not in unfit
        unfit[resource] = reason
        return is_new

    def states(self) -> tuple[TokenState, ...]:
        """Return every token by name: remaining limits if known, and why it was set aside."""
        return tuple(
            TokenState(self._name(token), dict(token.remaining), token.set_aside, dict(token.unfit))
            for token in self._tokens
        )

    def _fit(self, resource: Resource, without: Collection[int]) -> list[_Token]:
        fit = [token for token in self._tokens if self._is_fit(token, resource) and token.position not in without]
        if not fit and without:
            raise NoOtherTokenError
        if not fit:
            reasons = "; ".join(
                f"{self._name(token)}: {token.set_aside or token.unfit[resource]}" for token in self._tokens
            )
            raise ConfigurationError(
                f"GitHub rejects all tokens in {SETTING}", why=reasons, remedy="Replace them by valid ones"
            )
        return fit

    @staticmethod
    def _is_fit(token: _Token, resource: Resource) -> bool:
        return not token.set_aside and resource not in token.unfit

    @staticmethod
    def _pause(limits: RateLimits, token: _Token, resource: Resource, now: float) -> Pause:
        user = limits.user(token.secret)
        budget = user.budget(resource)
        if user.blocked_until > max(now, budget.free_at()):
            return Pause("GitHub asked for a pause (secondary limit)", user.blocked_until - now)
        if budget.remaining is not None and budget.remaining < 1:
            return Pause(f"GitHub's limit of {resource} requests is used up until it is reset", budget.reset - now)
        return Pause(
            f"the last {budget.remaining} {resource} requests are spread until the reset", budget.free_at() - now
        )

    def _name(self, token: _Token) -> str:
        if self.anonymous:
            return "anonymous access"
        return f"token {token.position + 1} of {len(self._tokens)}"
