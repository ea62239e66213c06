"""Calls that are made at the same time, answered together.

Each item of a stage asks for itself and fails for itself, while GitHub is cheap only when asked for many at once: so
the calls made in one turn of the event loop are collected, and answered one by one as the work on all of them goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")


class Calls(Generic[K, R]):
    """The calls of one batch. Work answers each of them, at any time and in any order."""

    def __init__(self) -> None:
        self._futures: dict[K, list[asyncio.Future[R]]] = {}

    @property
    def keys(self) -> Sequence[K]:
        """What was asked for and is not answered yet, each once, in the order of asking."""
        return tuple(self._futures)

    def add(self, key: K) -> asyncio.Future[R]:
        """One more call."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(key, []).append(future)
        return future

    def answer(self, key: K, result: R) -> None:
        """Return *result* from all calls for *key*."""
        for future in self._close(key):
            future.set_result(result)

    def fail(self, key: K, error: BaseException) -> None:
        """Raise *error* from all calls for *key*."""
        for future in self._close(key):
            future.set_exception(error)

    def cancel(self) -> None:
        """Cancel all calls that are not answered."""
        for key in self.keys:
            for future in self._close(key):
                future.cancel()

    def _close(self, key: K) -> list[asyncio.Future[R]]:
        # what is answered is not held until the last call is; a caller that was cancelled took its future with it
        return [future for future in self._futures.pop(key) if not future.done()]


class Batches(Generic[K, R]):
    """Hands the calls of each turn of the event loop to *work*; what *work* raises ends all calls it left open."""

    def __init__(self, work: Callable[[Calls[K, R]], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._collecting: Calls[K, R] | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, key: K) -> R:
        """The result for *key*, from a batch with everything else that is asked for in this turn."""
        if self._collecting is None:
            self._collecting = Calls()
            asyncio.get_running_loop().call_soon(self._start)
        return await self._collecting.add(key)

    async def close(self) -> None:
        """Stop the work of batches that nobody waits for any more."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self) -> None:
        calls, self._collecting = self._collecting, None
        if calls is None:
            return
        task = asyncio.get_running_loop().create_task(self._work(calls))
        self._running.add(task)
        task.add_done_callback(lambda ended: self._end(ended, calls))

    def _end(self, task: asyncio.Task[None], calls: Calls[K, R]) -> None:
        self._running.discard(task)
        if task.cancelled():
            calls.cancel()
            return
        error = task.exception()
        for key in calls.keys:
            calls.fail(key, error or RuntimeError(f"the batch ended without an answer for {key}"))
