"""REST answers that were seen before: asked for with their ETag they cost nothing while they are unchanged.

docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api, "Use conditional requests if
appropriate". Answers are kept per token, since tokens may see different things, under a keyed hash of the token.

An HTTP cache from a library (hishel) sits in the transport, below the choice of the token and the count of points: it
can neither report which token has a cached answer before one is chosen, nor that a 304 cost nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import httpx

from formulacode_dagster.models.base import Frozen

from .answers import RestAnswer

T = TypeVar("T")

LARGEST_ANSWER = 2_000_000
LARGEST_CACHE = 100_000_000
"""Bytes of compressed answers; beyond them the least recently used go."""
WRITES_BETWEEN_EVICTIONS = 200
BUSY_SECONDS = 2.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    url TEXT NOT NULL, accept TEXT NOT NULL, token TEXT NOT NULL, etag TEXT NOT NULL, status INTEGER NOT NULL,
    link TEXT NOT NULL, body BLOB NOT NULL, size INTEGER NOT NULL, used_at REAL NOT NULL,
    PRIMARY KEY (url, accept, token)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_by_use ON answers (used_at, size);
"""
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class CachedAnswer(Frozen):
    """A successful answer as it came. `token` is the key of the token that asked."""

    token: str = ""
    etag: str
    status: int
    link: str = ""
    text: str

    @classmethod
    def of(cls, response: httpx.Response) -> CachedAnswer:
        """Create it from *response*; without an ETag it cannot be requested conditionally."""
        headers = response.headers
        return cls(
            etag=headers.get("etag", ""),
            status=response.status_code,
            link=headers.get("link", ""),
            text=response.text,
        )

    def answer(self, accept: str) -> RestAnswer:
        """Return the content for the caller; raises ValueError if JSON was requested and this is none."""
        following = httpx.Response(self.status, headers={"link": self.link}).links.get("next", {}).get("url", "")
        return RestAnswer(self.status, json.loads(self.text) if "json" in accept else self.text, following)


class AnswerCache:
    """A SQLite file private to this user, shared by all processes. It never fails its caller.

    A damaged file is deleted and created again, and an unusable one is skipped; *on_trouble* is called once.
    """

    def __init__(self, path: Path, on_trouble: Callable[[str], None], *, largest: int = LARGEST_CACHE) -> None:
        self._path = path
        self._on_trouble = on_trouble
        self._largest = largest
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="github-answers")
        self._connection: sqlite3.Connection | None = None
        self._usable = True
        self._writes = 0

    async def find(self, url: str, accept: str) -> dict[str, CachedAnswer]:
        """Return the cached answers for *url*, by key of the token that asked."""
        answers = await self._run(lambda connection: _find(connection, url, accept))
        return answers or {}

    async def keep(self, url: str, accept: str, answers: Sequence[CachedAnswer]) -> None:
        """Remember *answers* to *url*, and that it was asked for now."""
        await self._run(lambda connection: self._keep(connection, url, accept, answers))

    async def close(self) -> None:
        """Close the file."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if not self._usable:
            return None
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, work)

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        for is_last in (False, True):
            try:
                connection = self._connection = self._connection or self._open()
                with connection:
                    return work(connection)
            except (sqlite3.Error, OSError, zlib.error) as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code in _BUSY:
                    return None
                if is_last or not (code in _DAMAGED or isinstance(error, zlib.error)):
                    self._usable = False
                    self._on_trouble(f"{self._path} cannot be used ({error}): all GitHub requests are repeated")
                    return None
                self._on_trouble(f"{self._path} was damaged ({error}) and is started from scratch")
                self._remove()
        return None

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its other files the mode of this one
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _keep(self, connection: sqlite3.Connection, url: str, accept: str, answers: Sequence[CachedAnswer]) -> None:
        now = time.time()
        connection.execute("UPDATE answers SET used_at = ? WHERE url = ? AND accept = ?", (now, url, accept))
        for answer in answers:
            body = zlib.compress(answer.text.encode(), 1)
            if len(body) > LARGEST_ANSWER:
                continue
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (url, accept, answer.token, answer.etag, answer.status, answer.link, body, len(body), now),
            )
            if self._writes % WRITES_BETWEEN_EVICTIONS == 0:
                self._evict(connection)
            self._writes += 1

    def _evict(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "DELETE FROM answers WHERE used_at < (SELECT min(used_at) FROM"
            " (SELECT used_at, sum(size) OVER (ORDER BY used_at DESC, url) AS newer FROM answers) WHERE newer <= ?)",
            (self._largest,),
        )

    def _remove(self) -> None:
        self._close()
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _find(connection: sqlite3.Connection, url: str, accept: str) -> dict[str, CachedAnswer]:
    rows = connection.execute(
        "SELECT token, etag, status, link, body FROM answers WHERE url = ? AND accept = ?", (url, accept)
    )
    return {
        token: CachedAnswer(token=token, etag=etag, status=status, link=link, text=zlib.decompress(body).decode())
        for token, etag, status, link, body in rows
    }
