"""The database's content on tasks, in the dataset's form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.records import month_records
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from resources.database import open_database


def records(
    *, start_date: date | str, end_date: date | str, database: Database | str | None = None
) -> list[TaskRecords]:
    """The tasks merged from *start_date* on and before *end_date* (UTC; dates, or `2026-02-01`), oldest first.

    *database* is one, its URL, or None for that of the settings. Raises ConfigurationError for an invalid date.
    """
    start, end = _midnight(start_date), _midnight(end_date)
    found: list[TaskRecords] = []
    with opened(database) as store, store.transaction() as connection:
        month = Month.of(start)
        while month.start < end:
            found += month_records(connection, month.key).values()
            month = month.next()
    within = [record for record in found if start <= record.row.pr_merged_at < end]
    return sorted(within, key=lambda record: (record.row.pr_merged_at, record.row.task_id))


@contextmanager
def opened(database: Database | str | None) -> Iterator[Database]:
    """*database* as it is; one that is named by its URL, or by the settings, is closed afterwards."""
    if isinstance(database, Database):
        yield database
        return
    store = open_database(database or "")
    try:
        yield store
    finally:
        store.close()


def _midnight(day: date | str) -> datetime:
    try:
        read = date.fromisoformat(day) if isinstance(day, str) else day
    except ValueError as error:
        raise ConfigurationError(f"{day!r} is not a date", remedy="Write it as 2026-02-01") from error
    return datetime.combine(read, time(), UTC)
