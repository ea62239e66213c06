"""Which months a command line means."""

from __future__ import annotations

from datetime import UTC, datetime

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month


def months_of(month: str | None, start_date: str | None, end_date: str | None) -> list[Month]:
    """The months that `--month`, or both dates, name; raises ConfigurationError when they name none."""
    from assets.partitions import closed_month

    if month is not None and start_date is None and end_date is None:
        return [closed_month(month)]
    if month is None and start_date is not None and end_date is not None:
        first, end = _first_of_month(start_date), _first_of_month(end_date)
        months: list[Month] = []
        while first.key < end.key:
            months.append(closed_month(first.key))
            first = first.next()
        if months:
            return months
        raise ConfigurationError(f"{start_date} to {end_date} holds no month", remedy="Put the end after the start")
    raise ConfigurationError(
        "no month was given", remedy="Give --month 2026-02, or --start-date 2026-02-01 --end-date 2026-03-01"
    )


def _first_of_month(text: str) -> Month:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        day = None
    if day is None or day.day != 1:
        raise ConfigurationError(
            f"{text!r} is not the first day of a month", remedy="Months are whole: write 2026-02-01"
        )
    return Month.parse(f"{day.year:04d}-{day.month:02d}")
