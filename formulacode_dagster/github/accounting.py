"""What calls cost, for a whole client and for any stretch of work within it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from formulacode_dagster.models.items import Cost


@dataclass
class Account:
    """A running sum. `cost.seconds` is spent on the wire; waits for limits and pacing are apart."""

    cost: Cost = field(default_factory=Cost)
    waited_seconds: float = 0.0
    limit_hits: int = 0

    def add(self, *, points: int = 0, requests: int = 0, seconds: float = 0.0, size: int = 0) -> None:
        """Book one call."""
        self.cost = self.cost + Cost(api_points=points, api_requests=requests, seconds=seconds, bytes=size)


class Ledger:
    """The client's own account, and those opened around pieces of work; tasks inherit the accounts of their opener."""

    def __init__(self) -> None:
        self.total = Account()
        self._open: ContextVar[tuple[Account, ...]] = ContextVar("open_accounts", default=())

    @contextmanager
    def account(self) -> Iterator[Account]:
        """An account of what is called inside the `with` block; nested ones each get the whole."""
        account = Account()
        reset = self._open.set((*self._open.get(), account))
        try:
            yield account
        finally:
            self._open.reset(reset)

    def current(self) -> tuple[Account, ...]:
        """Every account that a call made now is booked on."""
        return (self.total, *self._open.get())
