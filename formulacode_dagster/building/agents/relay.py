"""The socket through which an agent asks for a build: one fixed request, which carries nothing.

The host reads the build's input from the workspace. Nothing that an agent reads or writes here is trusted later.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from formulacode_dagster.operating.cancellation.stopping import Stopped

from .bridge import BUILD_SOCKET, REQUEST
from .edit import SpecEdit
from .gates import EditRefused
from .protocol import BuildRelay, EditGate, RelayedBuild

REQUEST_SECONDS = 5.0
LOG_CHARACTERS = 20_000


class Relay:
    """Answers requests one after the other, until it is closed."""

    def __init__(
        self, folder: Path, read: Callable[[], SpecEdit], build: BuildRelay, most: int, cut: Callable[[], None]
    ) -> None:
        """*read* returns the workspace's content; *cut* ends the agent after a request that the protocol does not
        allow.
        """
        self._read = read
        self._build = build
        self._most = most
        self._cut = cut
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(folder / BUILD_SOCKET))
        (folder / BUILD_SOCKET).chmod(0o666)
        self._server.listen(4)
        self.builds = 0
        self.refused: EditRefused | None = None
        """A request that was none."""
        self.error: BaseException | None = None
        """The exception that a build raised."""
        self._thread = threading.Thread(target=self._serve, daemon=True, name="agent-relay")
        self._thread.start()

    def close(self) -> None:
        """Stop answering; wait for a build in progress."""
        with suppress(OSError):
            # wakes the thread that waits for a caller
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        while self.error is None:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(REQUEST_SECONDS)
        request = b""
        while len(request) <= len(REQUEST) and (chunk := connection.recv(len(REQUEST) + 1)):
            request += chunk
        if request != REQUEST:
            self.refused = EditRefused(EditGate.RELAY, f"the relay was asked for {request[:40]!r}")
            self._cut()
            return
        built = self._built()
        told = {"ok": built.ok, "stage": built.stage, "log": built.log[-LOG_CHARACTERS:]}
        connection.sendall(json.dumps(told).encode())

    def _built(self) -> RelayedBuild:
        if self.builds >= self._most:
            return RelayedBuild(ok=False, stage="relay", log=f"all {self._most} builds are used up")
        self.builds += 1
        try:
            return self._build(self._read())
        except EditRefused as refused:
            return RelayedBuild(ok=False, stage=refused.gate.value, log=f"nothing was built: {refused}")
        except (Exception, Stopped) as error:  # noqa: BLE001 - raised again by the thread that runs the agent
            self.error = error
            self._cut()
            return RelayedBuild(ok=False, stage="relay", log="the build was given up")


@contextmanager
def relaying(relay: Relay | None) -> Iterator[None]:
    """Close *relay* at the end; raise the exception of its build in place of those it caused."""
    try:
        yield
    finally:
        if relay is not None:
            relay.close()
            if relay.error is not None:
                raise relay.error
