"""A backfill of months whose daemon is killed, and whose code location is cut off: each month is launched once.

What acts is the backfill of Dagster's own daemon, over our code location in a process of its own.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import dagster as dg
import pytest

from bench.scale_backfill import (
    BACKFILL,
    LOCALHOST,
    add_backfill,
    instance_with_a_queue,
    iterate,
    queued_months,
    served_code,
)
from formulacode_dagster.orchestration.home import WAIT_FOR_CODE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # of Dagster, of its own functions
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

MONTHS = ("2026-01", "2026-02", "2026-03")


class KilledError(BaseException):
    """Stands for `kill -9`: nothing of the daemon's may catch it."""


class Line:
    """A connection to a server on this machine that can be cut, and mended."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._open: list[socket.socket] = []
        self._listener = socket.create_server((LOCALHOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._serve(self._listener)

    def cut(self) -> None:
        """End what is connected, and refuse everybody."""
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def mend(self) -> None:
        """Let everybody through again."""
        self._listener = socket.create_server((LOCALHOST, self.port))
        self._serve(self._listener)

    def _serve(self, listener: socket.socket) -> None:
        def accept() -> None:
            with suppress(OSError):
                while True:
                    here, _ = listener.accept()
                    there = socket.create_connection((LOCALHOST, self._to))
                    self._open += [here, there]
                    for source, target in ((here, there), (there, here)):
                        threading.Thread(target=_pump, args=(source, target), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(65536):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    """To a process that serves our code location."""
    with served_code(tmp_path / "code-server.log") as port:
        line = Line(port)
        yield line
        line.cut()


def test_a_killed_daemon_and_a_cut_line_launch_each_month_once(
    tmp_path: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in WAIT_FOR_CODE.items():
        monkeypatch.setenv(name, value)
    with instance_with_a_queue(tmp_path / "home") as instance:
        add_backfill(instance, line.port, MONTHS)
        submit = dg.DagsterInstance.submit_run

        def killed_after_one(self: dg.DagsterInstance, *arguments: object, **named: object) -> dg.DagsterRun:
            if queued_months(self):
                raise KilledError
            return submit(self, *arguments, **named)

        with monkeypatch.context() as patched:
            patched.setattr(dg.DagsterInstance, "submit_run", killed_after_one)
            with pytest.raises(KilledError):
                iterate(instance, line.port)
        assert len(queued_months(instance)) == 1

        line.cut()
        with pytest.warns(UserWarning, match="Could not reach user code server"):
            iterate(instance, line.port)
        assert len(queued_months(instance)) == 1
        state = instance.get_backfill(BACKFILL)
        assert state is not None
        assert state.status.value == "REQUESTED", "it waits for the code location"

        line.mend()
        for _ in range(2):
            assert iterate(instance, line.port) == []
        assert queued_months(instance) == list(MONTHS)
