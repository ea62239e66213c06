"""The month: its key, its half-open UTC window over `merged_at`, its release name."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from .base import Frozen
from .errors import ConfigurationError

SETTLES_AFTER = timedelta(hours=1)
"""GitHub indexes merges for search some time after they happen; a count read earlier may lack the last of them."""

FIRST_MONTH = "2015-01"
"""The earliest month the platform covers; asv itself appeared in 2013, its suites spread from 2015."""


class Month(Frozen):
    """`2026-02` is the window ``[2026-02-01, 2026-03-01)`` in UTC."""

    year: int
    month: int

    @classmethod
    def parse(cls, key: str) -> Month:
        """Read `YYYY-MM`; raises ConfigurationError for anything else."""
        match = re.fullmatch(r"(\d{4})-(0[1-9]|1[0-2])", key)
        if match is None:
            raise ConfigurationError(f"{key!r} is not a month", remedy="Write it as YYYY-MM, for example 2026-02")
        month = cls(year=int(match[1]), month=int(match[2]))
        if month.key < FIRST_MONTH:
            raise ConfigurationError(f"month {key} is before {FIRST_MONTH}, the first one covered")
        return month

    @classmethod
    def of(cls, moment: datetime) -> Month:
        """Return the month whose window contains *moment* (an aware datetime)."""
        utc = moment.astimezone(UTC)
        return cls(year=utc.year, month=utc.month)

    @property
    def key(self) -> str:
        """`YYYY-MM`: partition key, and name of the dataset config."""
        return f"{self.year:04d}-{self.month:02d}"

    @property
    def start(self) -> datetime:
        """First instant of the window, included."""
        return datetime(self.year, self.month, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """First instant after the window, excluded."""
        return self.next().start

    def next(self) -> Month:
        """The month after this one."""
        return Month(year=self.year + self.month // 12, month=self.month % 12 + 1)

    def previous(self) -> Month:
        """The month before this one."""
        return Month(year=self.year - (self.month == 1), month=(self.month - 2) % 12 + 1)

    def holds(self, moment: datetime) -> bool:
        """Return True if *moment* is in the window."""
        return self.start <= moment < self.end

    def settled(self, moment: datetime) -> bool:
        """Return True if the window was over at *moment*, for long enough that GitHub's search had caught up."""
        return moment >= self.end + SETTLES_AFTER

    @property
    def release(self) -> str:
        """Tag of the release in which the window ends: `formulacode@2026-03` for 2026-02."""
        return f"formulacode@{self.next().key}"

    def tag(self, number: int = 0) -> str:
        """Tag of the release, or of its revision *number*: `formulacode@2026-03.1` is the first."""
        return f"{self.release}.{number}" if number else self.release

    def __str__(self) -> str:
        return self.key
