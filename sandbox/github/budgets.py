"""Usage of limits: primary budgets by user and resource, secondary limits by user."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .context import Rate
from .limits import Limits, Resource

UNLIMITED = 1_000_000_000
"""Value shown for a budget without a limit."""
MINUTE = 60.0


@dataclass
class _Window:
    used: int = 0
    ends: float = 0.0


@dataclass
class _User:
    windows: dict[Resource, _Window] = field(default_factory=dict)
    recent: dict[bool, deque[float]] = field(default_factory=lambda: {True: deque(), False: deque()})
    worked: deque[tuple[float, bool, float]] = field(default_factory=deque)
    """When an answer was made, whether to GraphQL, and for how many seconds."""
    penalty_until: float = 0.0
    under_way: int = 0


class Budgets:
    """Counts and refuses. Users go by login, None is everybody without a token. Used from the event loop only."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.time) -> None:
        self._limits = limits
        self._now = now
        self._users: dict[str | None, _User] = {}

    def reset(self) -> None:
        """Everybody's budgets are whole again."""
        self._users = {login: _User(under_way=user.under_way) for login, user in self._users.items()}

    def rate(self, login: str | None, resource: Resource) -> Rate:
        """Return the current primary budget of *resource*."""
        window = self._window(login, resource)
        limit = self._limits.primary(resource, anonymous=login is None)
        return Rate(UNLIMITED if limit is None else limit, window.used, int(-(-window.ends // 1)))

    def rates(self, login: str | None) -> dict[str, Rate]:
        """All primary budgets."""
        return {resource.value: self.rate(login, resource) for resource in Resource}

    def charge(self, login: str | None, resource: Resource, points: int = 1) -> Rate:
        """Pay *points*; the budget afterwards."""
        self._window(login, resource).used += points
        return self.rate(login, resource)

    def exhausted(self, login: str | None, resource: Resource) -> bool:
        """Return True if nothing is left of the primary budget."""
        return self.rate(login, resource).remaining <= 0

    def enter(self, login: str | None) -> None:
        """A call begins."""
        self._users.setdefault(login, _User()).under_way += 1

    def leave(self, login: str | None) -> None:
        """A call is over."""
        self._users.setdefault(login, _User()).under_way -= 1

    def work(self, login: str | None, resource: Resource, seconds: float) -> None:
        """Count the *seconds* that an answer takes."""
        user = self._users.setdefault(login, _User())
        user.worked.append((self._now(), resource is Resource.GRAPHQL, seconds))

    def refused(self, login: str | None, resource: Resource) -> str | None:
        """Count a call that has begun against the secondary limits; which of them refuses it, if any.

        Whoever meets one is refused everything until the time that `Retry-After` names.
        """
        user, now = self._users.setdefault(login, _User()), self._now()
        if user.penalty_until > now:
            return "secondary penalty"
        graphql = resource is Resource.GRAPHQL
        recent = user.recent[graphql]
        while recent and recent[0] <= now - self._limits.secondary_seconds:
            recent.popleft()
        recent.append(now)
        most = self._limits.graphql_points if graphql else self._limits.rest_points
        reason = None
        if self._limits.concurrent is not None and user.under_way > self._limits.concurrent:
            reason = "secondary concurrency"
        elif most is not None and len(recent) > most:
            reason = "secondary points"
        elif self._overworked(user, now):
            reason = "secondary seconds"
        if reason:
            pause = self._limits.retry_after_seconds
            user.penalty_until = now + (MINUTE if pause is None else pause)
        return reason

    def retry_after(self, login: str | None) -> int | None:
        """Whole seconds for `Retry-After`; None when GitHub shall not say."""
        if self._limits.retry_after_seconds is None:
            return None
        user = self._users.get(login)
        left = (user.penalty_until - self._now()) if user else 0.0
        return max(0, int(-(-left // 1))) if left > 0 else self._limits.retry_after_seconds

    def _overworked(self, user: _User, now: float) -> bool:
        while user.worked and user.worked[0][0] <= now - self._limits.secondary_seconds:
            user.worked.popleft()
        spent = sum(seconds for _, graphql, seconds in user.worked if graphql)
        everything = sum(seconds for *_, seconds in user.worked)
        limits = ((self._limits.graphql_seconds, spent), (self._limits.all_seconds, everything))
        return any(most is not None and seconds > most for most, seconds in limits)

    def _window(self, login: str | None, resource: Resource) -> _Window:
        user, now = self._users.setdefault(login, _User()), self._now()
        window = user.windows.get(resource)
        if window is None or window.ends <= now:
            window = user.windows[resource] = _Window(0, now + self._limits.window(resource))
        return window
