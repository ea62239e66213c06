"""The request to stop: SIGINT and SIGTERM reach, through one object, every place that waits for something outside.

Python runs signal handlers only in the main thread, while long work blocks in threads; and Dagster replaces our
handlers with its own and removes them again. So a thread receives the signals in addition to the handlers.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_slept: ContextVar[list[float] | None] = ContextVar("slept", default=None)


class Stopped(BaseException):
    """The run was asked to stop: unfinished work remains pending. `except Exception` does not catch it."""


class StopRequest:
    """State of the stop request of this process: the signal, and the callbacks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._number: int = signal.SIGINT
        self._concerned: dict[object, Callable[[], object]] = {}
        self._at_last = ExitStack()
        self.is_unhurried = False
        """True if the process has the time it needs to stop, because others stop before it."""
        self.is_told = False
        """True if the main thread got an exception; a second one would disturb its cleanup."""

    @property
    def requested(self) -> bool:
        """True if the process is asked to stop."""
        return self._event.is_set()

    @property
    def exit_status(self) -> int:
        """128 and the signal's number, as shells have it: 130 or 143."""
        return 128 + self._number

    def request(self, number: int = signal.SIGINT) -> None:
        """Ask everybody to stop, as signal *number* does; the first request counts."""
        with self._lock:
            if self._event.is_set():
                return
            self._number = number
            self._event.set()
            concerned = list(self._concerned.values())
        for end in reversed(concerned):
            end()

    def raise_if_requested(self) -> None:
        """Raise Stopped once a stop is requested."""
        if self._event.is_set():
            self.is_told = self.is_told or threading.current_thread() is threading.main_thread()
            raise Stopped

    def sleep(self, seconds: float) -> None:
        """Sleep; raises Stopped as soon as a stop is requested."""
        started = time.monotonic()
        self._event.wait(seconds)
        if (slept := _slept.get()) is not None:
            slept.append(time.monotonic() - started)
        self.raise_if_requested()

    def at_last(self, act: Callable[[], object]) -> None:
        """Call *act*, newest first, should the process have to be ended from outside of its main thread."""
        self._at_last.callback(act)

    def exit_at_last(self) -> None:
        """End the process now, after the callbacks of `at_last`."""
        try:
            self._at_last.close()
        finally:
            os._exit(self.exit_status)

    @contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[None]:
        """Call *end*, from another thread, when a stop is requested inside the block.

        Raises Stopped instead of the error that *end* causes in the block, and instead of entering it too late.
        """
        key = object()
        with self._lock:
            self.raise_if_requested()
            self._concerned[key] = end
        try:
            yield
        except Exception as error:
            if self._event.is_set():
                raise Stopped from error
            raise
        finally:
            with self._lock:
                self._concerned.pop(key)
        self.raise_if_requested()


def clock_of_work() -> Callable[[], float]:
    """Return a clock, in seconds, that stands still while this context, or a thread with it, is in `StopRequest.sleep`.

    There an item waits for its turn on the machine.
    """
    slept: list[float] = []
    _slept.set(slept)
    return lambda: time.monotonic() - math.fsum(slept)


_current = StopRequest()
_hearing = False


def stop_request() -> StopRequest:
    """The request that concerns this process."""
    return _current


@contextmanager
def signals_heard(*, patience: float | None = None) -> Iterator[StopRequest]:
    """Make SIGINT and SIGTERM a request to stop, for the length of a `with` block; inside another one, that one's.

    With *patience*, a process that has not left the block this many seconds after the request runs the callbacks of
    `StopRequest.at_last` and exits, because Dagster sleeps through signals while it waits for a pool. Outside the main
    thread, which alone gets signals from Python, nothing changes. See `StopRequest.is_unhurried`.
    """
    global _current, _hearing
    if _hearing or threading.current_thread() is not threading.main_thread():
        yield _current
        return
    before, _current, _hearing = _current, StopRequest(), True
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    over = threading.Event()
    listener = threading.Thread(target=_hear, args=(reading, _current, over, patience), name="signals", daemon=True)
    listener.start()
    fd_before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        yield _current
    finally:
        over.set()
        signal.set_wakeup_fd(fd_before)
        writing.close()
        listener.join()
        reading.close()
        _current, _hearing = before, False


def _hear(reading: socket.socket, request: StopRequest, over: threading.Event, patience: float | None) -> None:
    while numbers := reading.recv(64):
        wanted = [number for number in numbers if number in SIGNALS]
        if not wanted:
            continue
        request.request(wanted[0])
        if patience is not None and not request.is_unhurried and not over.wait(patience):
            request.exit_at_last()


@contextmanager
def interrupted_once(error: type[BaseException] | None) -> Iterator[None]:
    """Make the first SIGINT or SIGTERM raise *error* in the main thread; later signals do not disturb the cleanup.

    Without *error* nothing is raised: the code inside checks the request itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if error is not None and not _current.is_told:
            _current.is_told = True
            raise error

    before = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
