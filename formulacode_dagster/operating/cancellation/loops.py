"""Asynchronous work that ends when the run is to stop, and blocking work in threads that may then be left."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from .stopping import interrupted_once, stop_request

T = TypeVar("T")

LEFT_AFTER_SECONDS = 5.0
"""Time for a thread to clean up after its work was cancelled, before the process continues without it."""


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, in which a request to stop cancels *main*; raises Stopped when it has come to its end then."""
    with interrupted_once(None):
        return asyncio.run(_stoppable(main))


async def _stoppable(main: Coroutine[Any, Any, T]) -> T:
    task, loop = asyncio.create_task(main), asyncio.get_running_loop()

    def cancel() -> None:
        # a loop that is closed by now has nothing left to cancel
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)

    request = stop_request()
    try:
        with request.ending(cancel):
            return await task
    except asyncio.CancelledError:
        request.raise_if_requested()
        raise


async def in_thread(function: Callable[..., T], *arguments: Any, left_after: float = LEFT_AFTER_SECONDS) -> T:
    """Run blocking *function* in a dedicated thread.

    Once cancelled it waits *left_after* seconds for the thread, which is then left to end with the process: a hanging
    answer must not keep anybody, as it does with `asyncio.to_thread`.
    """
    context = contextvars.copy_context()
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(context.run(function, *arguments))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)

    threading.Thread(target=work, name=getattr(function, "__qualname__", "work"), daemon=True).start()
    ended = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        await asyncio.wait([ended], timeout=left_after)
        ended.cancel()
        raise
