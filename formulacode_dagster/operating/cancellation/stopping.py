"""The request to stop: SIGINT and SIGTERM reach, through one object, every place that waits for something outside.

Python runs signal handlers in the main thread alone, while the long work blocks in threads; and Dagster puts handlers
of its own in place of ours, and takes them away again. So the signals are heard beside the handlers, by a thread.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The run was asked to stop: what is not finished stays to do. No `except Exception` takes it for a failure."""


class StopRequest:
    """Whether this process was asked to stop, by which signal, and whom that concerns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._number: int = signal.SIGINT
        self._concerned: dict[object, Callable[[], object]] = {}
        self._at_last = ExitStack()
        self.is_unhurried = False
        """Whether the process is left the time it takes to stop, as one is that has others to stop first."""
        self.is_told = False
        """Whether the main thread was told by an exception; a second one would disturb its cleaning up."""

    @property
    def requested(self) -> bool:
        """Whether the process is to stop."""
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

    def wait(self, seconds: float) -> bool:
        """Whether a stop is requested within *seconds*."""
        return self._event.wait(seconds)

    def sleep(self, seconds: float) -> None:
        """Sleep; raises Stopped as soon as a stop is requested."""
        self._event.wait(seconds)
        self.raise_if_requested()

    def at_last(self, act: Callable[[], object]) -> None:
        """Call *act*, newest first, should the process have to be ended from outside of its main thread."""
        self._at_last.callback(act)

    def exit_at_last(self) -> None:
        """End the process now, after what was asked for with `at_last`."""
        try:
            self._at_last.close()
        finally:
            os._exit(self.exit_status)

    @contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[None]:
        """Call *end*, from another thread, when a stop is requested inside the block.

        Raises Stopped in place of whatever error *end* has caused in the block, and instead of entering it too late.
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


_current = StopRequest()
_hearing = False


def stop_request() -> StopRequest:
    """The request that concerns this process."""
    return _current


@contextmanager
def signals_heard(*, patience: float | None = None) -> Iterator[StopRequest]:
    """Make SIGINT and SIGTERM a request to stop, for the length of a `with` block; inside another one, that one's.

    With *patience*, a process that has not left the block so many seconds after the request does what was asked for
    with `StopRequest.at_last` and exits: Dagster sleeps through signals while it waits for a pool. In another thread
    than the main one, to which Python gives no signals, nothing is changed. See `StopRequest.is_unhurried`.
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
    """Have the first SIGINT or SIGTERM raise *error* in the main thread, and no later one disturb what that starts.

    Without *error* none is raised: what runs inside looks at the request by itself.
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
