"""Records calls, their cost, and refusals: for tests and reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Accounting:
    """Counts since the start, or since the last `/_sandbox/reset`. Used from the event loop only."""

    total: int = 0
    endpoints: Counter[str] = field(default_factory=Counter)
    """Counts by `METHOD /path/{template}` or `graphql`; and by `graphql OperationName` for named operations."""
    statuses: Counter[int] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    """Points of the primary budgets, by resource."""
    limit_hits: Counter[str] = field(default_factory=Counter)
    """Refusals, as `primary core`, `secondary concurrency`, `secondary points`; not those that a fault feigned."""
    faults: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    under_way: int = 0
    most_under_way: int = 0

    def begin(self, names: tuple[str, ...]) -> dict[str, int]:
        """Count a call under each of its *names*; how often each was called, this one included."""
        self.total += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for name in names:
            self.endpoints[name] += 1
        return {name: self.endpoints[name] for name in names} | {"*": self.total}

    def end(self, status: int, size: int) -> None:
        """The call is over; *status* 0 means that nothing was answered."""
        self.under_way -= 1
        self.statuses[status] += 1
        self.bytes += size

    def reset(self) -> None:
        """Forget everything but the calls under way."""
        under_way = self.under_way
        fresh = Accounting(under_way=under_way, most_under_way=under_way)
        self.__dict__.update(fresh.__dict__)

    def as_json(self) -> dict[str, Any]:
        """All of it, counters by name."""
        return {
            name: {str(key): count for key, count in sorted(value.items())} if isinstance(value, Counter) else value
            for name, value in vars(self).items()
        }
