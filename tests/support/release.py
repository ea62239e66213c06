"""Tables of a month from rows alone."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.models.task_tables import TaskRecords
from formulacode_dagster.release.tables import MonthTables, month_tables


def tables_of(rows: Sequence[TaskRecord]) -> MonthTables:
    """The tables of a month with these tasks, of which nobody kept more than the row."""
    return month_tables([TaskRecords(row=row) for row in rows])
