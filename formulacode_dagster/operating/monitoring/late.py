"""Months that should have been released by now."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from formulacode_dagster.models.month import Month

DUE_CRON = "0 6 28 * *"
"""When a month has to be released: the one before, on day 28 at 06:00 UTC."""
DUE_AFTER = timedelta(days=27, hours=6)
"""The same, from the end of the month's window."""


def late_month(released: Collection[str], now: datetime) -> Month | None:
    """Return the newest month that is due and not *released*; None if all is well, or nothing was ever released."""
    due = Month.of(now - DUE_AFTER).previous()
    return due if released and due.key not in released and min(released) < due.key else None
