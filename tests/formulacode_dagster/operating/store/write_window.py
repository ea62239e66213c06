"""A process that replaces a window, records its items, and waits at one point to be killed; run by test_kill.py.

    python write_window.py URL REPOSITORY_ID SIZE POINT

POINT is the beginning of a statement before which it waits, `COMMIT`, or empty to go through.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from sqlalchemy import event

from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import IntakeCount, MergedPullRequest
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.windows import replace_window
from tests.records import make_merged

MONTH = "2026-02"


def window(repository_id: int, size: int, body: str) -> tuple[IntakeCount, list[MergedPullRequest]]:
    """A window of *size*, each with *body*."""
    rows = [
        make_merged(month=MONTH, repository_id=repository_id, repository="a/b", number=number, body=body)
        for number in range(1, size + 1)
    ]
    count = IntakeCount(month=MONTH, repository_id=repository_id, repository="a/b", reported=size, stored=size)
    return count, rows


def main(url: str, repository_id: int, size: int, point: str) -> None:
    """Replace the window; say where it waits, for ever."""

    def wait() -> None:
        sys.stdout.write("waits\n")
        sys.stdout.flush()
        time.sleep(600)

    def before_statement(*told: Any) -> None:
        if point and told[2].strip().startswith(point):
            wait()

    def before_commit(_: Any) -> None:
        if point == "COMMIT":
            wait()

    database = Database(url)
    event.listen(database.engine, "before_cursor_execute", before_statement)
    event.listen(database.engine, "commit", before_commit)
    count, rows = window(repository_id, size, "a new text " * 1000)
    entries = [LedgerEntry(stage=Stage.PULL_REQUESTS, month=MONTH, item=row.item, state=ItemState.DONE) for row in rows]
    with database.transaction() as connection:
        replace_window(connection, count, rows)
        ledger.record(connection, entries)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
