"""The state of the limits, shared by all processes of this machine through one small file.

A JSON document, replaced as a whole under a lock: a process killed at any point leaves the old document or the new one,
and the kernel frees its locks. A rate limiter from a library would count turns, but neither hold slots of requests in
flight nor the tokens' budgets; a database would add files, a journal and waiting to twenty lines.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from formulacode_dagster.operating.cancellation.clock import Clock

from .pacing import Pacing
from .rate_limits import RateLimits

T = TypeVar("T")

LOCK_SECONDS = 10.0
"""A transaction takes a millisecond; a client that cannot get the lock for this long paces by itself."""
POLL_SECONDS = 0.002
FORGET_SECONDS = 2 * 24 * 3600.0
"""The state of an API unused for this long, such as a sandbox on some port, is removed."""


class LimitStore:
    """Keeps the state of the limits of this client only."""

    holder = "here"
    """Under which name this client's requests under way are counted."""

    def __init__(self, limits: RateLimits | None = None) -> None:
        self._limits = limits or RateLimits()

    async def update(self, change: Callable[[RateLimits], T]) -> T:
        """Let *change* read and modify the state exclusively; returns its result. It may be called twice."""
        return change(self._limits)

    async def close(self) -> None:
        """Release slots of requests in flight: the client ends."""


@dataclass
class _Document:
    apis: dict[str, RateLimits] = field(default_factory=dict)


_DOCUMENT = TypeAdapter(_Document)


class FileLimitStore(LimitStore):
    """Shared by all processes that use *folder*; *on_trouble* is called once with the reason if it is not.

    A damaged file is created again, without the burst that an idle machine has available. If the file is unusable, each
    client paces itself from then on, starting from its last state.
    """

    def __init__(self, folder: Path, url: str, clock: Clock, on_trouble: Callable[[str], None]) -> None:
        address = urlsplit(url)
        self._api = f"{address.hostname}:{address.port or ''}{address.path}"
        self._path = folder / "limits.json"
        self._lock = FileLock(folder / "limits.lock", LOCK_SECONDS, mode=0o600, thread_local=False)
        self._holders = folder / "holders"
        self.holder = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._alive = FileLock(self._holders / self.holder, 0, mode=0o600, thread_local=False)
        self._clock = clock
        self._on_trouble = on_trouble
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="github-limits")
        self._last = RateLimits()
        self._alone: LimitStore | None = None

    async def update(self, change: Callable[[RateLimits], T]) -> T:
        """Off the event loop, while no other process is at it."""
        if self._alone is None:
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, self._update, change)
            except (OSError, Timeout) as error:
                if self._alone is None:
                    self._alone = LimitStore(self._cautious())
                    self._on_trouble(f"{self._path} cannot be used ({error}): limits are kept only by this process")
        return await self._alone.update(change)

    async def close(self) -> None:
        """Release slots of requests in flight, and the name."""
        if self._alone is None and self._alive.is_locked:
            with suppress(OSError, Timeout):
                await self.update(lambda limits: limits.under_way.pop(self.holder, None))
        await asyncio.get_running_loop().run_in_executor(self._thread, self._leave)
        self._thread.shutdown(wait=False)

    def _leave(self) -> None:
        if self._alive.is_locked:
            with suppress(OSError):
                (self._holders / self.holder).unlink()
            self._alive.release()

    def _update(self, change: Callable[[RateLimits], T]) -> T:
        if not self._alive.is_locked:
            self._holders.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._alive.acquire()
        with self._lock.acquire(poll_interval=POLL_SECONDS):
            document = self._read()
            limits = document.apis.setdefault(self._api, RateLimits())
            self._forget(document, limits)
            limits.used_at = self._clock.time()
            result = change(limits)
            self._write(document)
            self._last = limits
        return result

    def _read(self) -> _Document:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return _Document()
        try:
            return _DOCUMENT.validate_json(text)
        except ValidationError:
            self._on_trouble(f"{self._path} was damaged and is started from scratch: remaining limits are read again")
            return _Document({self._api: self._cautious()})

    def _write(self, document: _Document) -> None:
        # one name for all writers: the lock is held, and leftovers of a killed writer are overwritten
        partial = self._path.with_suffix(".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(_DOCUMENT.dump_json(document))
        partial.replace(self._path)

    def _forget(self, document: _Document, limits: RateLimits) -> None:
        """Remove requests in flight of dead processes, and unused entries."""
        for holder in [name for name in limits.under_way if name != self.holder]:
            path = self._holders / holder
            probe = FileLock(path, 0, thread_local=False)
            with suppress(Timeout), probe:
                del limits.under_way[holder]
                path.unlink(missing_ok=True)
        now = self._clock.time()
        for api in [name for name, api in document.apis.items() if now - api.used_at > FORGET_SECONDS]:
            if document.apis[api] is not limits:
                del document.apis[api]

    def _cautious(self) -> RateLimits:
        """Return the last known state, with the burst used up."""
        limits = self._last
        limits.under_way.clear()
        limits.pace.use_up(Pacing(), self._clock.time())
        return limits
