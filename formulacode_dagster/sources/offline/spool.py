"""The rows of one month, by repository, on disk: a month of 20,000 pull requests with bodies is not held in memory."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from pathlib import Path

from formulacode_dagster.models.pull_request import MergedPullRequest


class Spool:
    """Pull requests by repository (a name in lower case) and number; safe to share between threads. Close it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fc-offline-")
        self._lock = threading.Lock()
        # a file of our own temporary folder: nothing needs to survive a crash
        self._connection = sqlite3.connect(
            Path(self._folder.name) / "rows.sqlite", check_same_thread=False, isolation_level=None
        )
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(
            "CREATE TABLE rows"
            " (repository TEXT, number INTEGER, place TEXT, row TEXT, PRIMARY KEY (repository, number))"
        )

    def add(self, repository: str, row: MergedPullRequest, place: str) -> str:
        """Store *row*, read at *place*; return the earlier place of a pull request that was read before."""
        values = (repository, row.number, place, row.model_dump_json())
        with self._lock:
            added = self._connection.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?)", values)
            if added.rowcount:
                return ""
            stored = self._connection.execute(
                "SELECT place FROM rows WHERE repository = ? AND number = ?", (repository, row.number)
            )
            return str(stored.fetchone()[0])

    def rows(self, repository: str) -> list[MergedPullRequest]:
        """Return the stored rows of *repository*, by number."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT row FROM rows WHERE repository = ? ORDER BY number", (repository,)
            ).fetchall()
        return [MergedPullRequest.model_validate_json(row) for (row,) in rows]

    def close(self) -> None:
        """Throw it all away."""
        with self._lock:
            self._connection.close()
        self._folder.cleanup()
