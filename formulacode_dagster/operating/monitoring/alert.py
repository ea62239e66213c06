"""Alerts: a failed run, failed checks, a late month, and when a month is late."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.month import Month

from .secrets import SecretFilter

SHOWN = 10
LONGEST = 800
DUE_CRON = "0 6 28 * *"
"""When a month has to be released: the one before, on day 28 at 06:00 UTC."""
DUE_AFTER = timedelta(days=27, hours=6)
"""The same, from the end of the month's window."""


class AlertKind(StrEnum):
    """Kind of event."""

    RUN_FAILED = "run_failed"
    CHECKS_FAILED = "checks_failed"
    MONTH_LATE = "month_late"


class FailedCheck(Frozen):
    """A failed check of an asset."""

    asset: str
    check: str
    blocking: bool
    summary: str


class Alert(Frozen):
    """One message; the webhook is sent it as JSON, other channels its words."""

    kind: AlertKind
    job: str = ""
    run_id: str = ""
    partition: str = Field(default="", description="month, or dashboard; empty: the run has none")
    errors: tuple[str, ...] = Field(default=(), description="errors of the failed steps")
    checks: tuple[FailedCheck, ...] = ()
    url: str = Field(default="", description="of the run, if FC_DAGSTER_URL is set")

    @property
    def title(self) -> str:
        """One line without line ends."""
        what = " ".join(part for part in (self.job, self.partition) if part)
        match self.kind:
            case AlertKind.RUN_FAILED:
                title = f"{what} failed"
            case AlertKind.CHECKS_FAILED:
                title = f"{what} succeeded, checks failed: {len(self.checks)}"
            case AlertKind.MONTH_LATE:
                title = f"{self.partition} is late: it is not released"
        return " ".join(f"formulacode: {title}".split())

    def lines(self) -> Iterator[str]:
        """The rest, a line or more for each thing to know."""
        for said, shown in ((self.errors, self.errors[:SHOWN]), (self.checks, self.checks[:SHOWN])):
            for entry in shown:
                if isinstance(entry, FailedCheck):
                    blocking = ", blocking" if entry.blocking else ""
                    entry = f"{entry.asset}/{entry.check}{blocking}: {entry.summary}"
                yield _short(entry)
            if len(said) > len(shown):
                yield f"and {len(said) - len(shown)} more"
        if self.run_id:
            yield f"run {self.run_id}"
        if self.url:
            yield self.url

    def without(self, secrets: SecretFilter) -> Alert:
        """The same message, with no credential in any of its texts."""
        checks = [check.model_copy(update={"summary": secrets.without(check.summary)}) for check in self.checks]
        return self.model_copy(
            update={
                "job": secrets.without(self.job),
                "partition": secrets.without(self.partition),
                "errors": tuple(_short(secrets.without(error)) for error in self.errors),
                "checks": tuple(checks),
            }
        )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def late_month(released: Collection[str], now: datetime) -> Month | None:
    """Return the newest month that is due and not *released*; None if all is well, or nothing was ever released."""
    due = Month.of(now - DUE_AFTER).previous()
    return due if released and due.key not in released and min(released) < due.key else None
