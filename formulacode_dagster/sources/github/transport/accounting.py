"""Accounting of calls, for a whole client and for any section of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime

from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Cost, Stage

from .answers import Resource


@dataclass
class Tally:
    """A running sum for one resource. `seconds` is spent on the wire; waits are apart."""

    requests: int = 0
    points: int = 0
    retries: int = 0
    limit_hits: int = 0
    seconds: float = 0.0
    waited_seconds: float = 0.0
    bytes: int = 0


@dataclass
class Account:
    """A running sum of all requests to GitHub, by resource."""

    tallies: dict[Resource, Tally] = field(default_factory=dict)

    def tally(self, resource: Resource) -> Tally:
        """The sum for *resource*."""
        return self.tallies.setdefault(resource, Tally())

    @property
    def cost(self) -> Cost:
        """Points of the primary limits, requests, seconds on the wire, bytes."""
        sums = self.tallies.values()
        return Cost(
            api_points=sum(tally.points for tally in sums),
            api_requests=sum(tally.requests for tally in sums),
            seconds=sum(tally.seconds for tally in sums),
            bytes=sum(tally.bytes for tally in sums),
        )

    @property
    def limit_hits(self) -> int:
        """Refusals for a primary or secondary limit."""
        return sum(tally.limit_hits for tally in self.tallies.values())

    def usage(self, *, run_id: str, stage: Stage, month: str, started_at: datetime) -> tuple[ApiUsage, ...]:
        """The same as rows to be stored, one a resource."""
        return tuple(
            ApiUsage(
                run_id=run_id,
                stage=stage,
                month=month,
                resource=resource.value,
                started_at=started_at,
                **{name: round(figure, 3) for name, figure in vars(tally).items()},
            )
            for resource, tally in sorted(self.tallies.items())
        )


class Ledger:
    """The client's own account, and those opened around pieces of work; tasks inherit the accounts of their opener."""

    def __init__(self) -> None:
        self.total = Account()
        self._open: ContextVar[tuple[Account, ...]] = ContextVar("open_accounts", default=())

    @contextmanager
    def account(self) -> Iterator[Account]:
        """Account for the calls in the `with` block; nested accounts each get the whole."""
        account = Account()
        reset = self._open.set((*self._open.get(), account))
        try:
            yield account
        finally:
            self._open.reset(reset)

    def current(self) -> tuple[Account, ...]:
        """Every account that a call made now is booked on."""
        return (self.total, *self._open.get())

    def tallies(self, resource: Resource) -> tuple[Tally, ...]:
        """The sums for *resource* of all those accounts."""
        return tuple(account.tally(resource) for account in self.current())
