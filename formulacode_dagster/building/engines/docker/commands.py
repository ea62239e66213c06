"""Runs commands in a container by its `command_server`: a command of the daemon's own costs 0.1 s of the processor."""

from __future__ import annotations

import json
import select
import ssl
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formulacode_dagster.building.engines.processes import KEPT_BYTES
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.operating.cancellation.stopping import stop_request

from .held_input import HeldInput

if TYPE_CHECKING:
    from docker.models.containers import Container

    from .daemon import DockerDaemon

SERVER = Path(__file__).with_name("command_server.py")
KILLED = 128 + 9
"""Status of a command that SIGKILL ended."""
RECEIVED = 1 << 16
_FRAME = struct.Struct("!cI")
_STREAM, _STDOUT = struct.Struct("!cxxxI"), b"\x01"
"""Head of the daemon's frames: https://docs.docker.com/reference/api/engine/ (attach to a container)."""
_GONE = (OSError, ValueError, AttributeError)
"""Errors of a closed connection, in the middle of a call as well."""


def command_that_serves(python: str, seconds: float) -> list[str]:
    """Return what a container runs to serve commands until its input ends, and for so many *seconds* at the most."""
    return [python, "-I", "-S", "-c", SERVER.read_text(encoding="utf-8"), str(int(seconds))]


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    completed: Completed
    with_container: bool = False
    """True if the container ended."""
    survivors: bool = False
    """True if processes of it are left."""


class CommandChannel(HeldInput):
    """Requests to, and answers from, the command server of *container*, which ends with the holder of its input.

    One thread reads and writes: a TLS connection is no place for two.
    """

    def __init__(self, daemon: DockerDaemon, container: Container) -> None:
        super().__init__(daemon, container, outputs=True)
        self._streams_read = bytearray()
        self._frames_read = bytearray()

    def hold(self) -> None:
        """Attach to the container."""
        super().hold()
        self._streams_read.clear()
        self._frames_read.clear()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str,
        environment: Mapping[str, str],
        stdin: bytes | None,
    ) -> Ended:
        """Run a command, one at a time. Raises Stopped when the run is to stop, which ends the container."""
        stop_request().raise_if_requested()
        asked = {"argv": list(argv), "cwd": cwd, "environment": dict(environment), "most": KEPT_BYTES}
        header = json.dumps(asked | {"stdin": None if stdin is None else len(stdin)}).encode()
        outputs = {b"o": bytearray(), b"e": bytearray()}
        rc, survivors, timed_out, is_over = KILLED, False, False, True
        started = time.monotonic()
        with stop_request().ending(self.release):
            self._send(struct.pack("!I", len(header)) + header + (stdin or b""))
            try:
                for kind, content in self._answer(started + timeout):
                    if kind in outputs:
                        outputs[kind] += content
                    else:
                        end = json.loads(content)
                        rc, survivors, is_over = end["rc"], end["survivors"], False
                        break
            except TimeoutError:
                timed_out, is_over = True, False
        seconds = time.monotonic() - started
        completed = Completed(rc, bytes(outputs[b"o"]), bytes(outputs[b"e"]), seconds, timed_out)
        return Ended(completed, with_container=is_over, survivors=survivors)

    def _send(self, request: bytes) -> None:
        # the answer shows that a connection is gone
        with suppress(*_GONE):
            self.connection.sendall(request)

    def _answer(self, deadline: float) -> Iterator[tuple[bytes, bytes]]:
        """Yield frames of the command server until the stream ends. Raises TimeoutError at the *deadline*."""
        while True:
            for stream, content in _taken(self._streams_read, _STREAM):
                if stream == _STDOUT:
                    self._frames_read += content
                else:
                    # only a server that fails writes there
                    yield b"e", content
            yield from _taken(self._frames_read, _FRAME)
            received = self._receive(deadline)
            if received == b"":
                return
            self._streams_read += received or b""

    def _receive(self, deadline: float) -> bytes | None:
        """Return what came, None for nothing yet, nothing at the end of the stream."""
        connection = self.connection
        if connection is None:
            return b""
        try:
            # what TLS has decrypted already, no poll sees
            if not (isinstance(connection, ssl.SSLSocket) and connection.pending()):
                _wait_for(connection, deadline)
            return bytes(connection.recv(RECEIVED))
        except (TimeoutError, ssl.SSLWantReadError):
            if time.monotonic() >= deadline:
                raise TimeoutError from None
            return None
        except _GONE:
            return b""


def _wait_for(connection: Any, deadline: float) -> None:
    """Wait until *connection* can be read; raises TimeoutError at the *deadline*, even if it can."""
    poll, left = select.poll(), deadline - time.monotonic()
    poll.register(connection, select.POLLIN)
    if left <= 0 or not poll.poll(1000 * left):
        raise TimeoutError


def _taken(buffer: bytearray, head: struct.Struct) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of each whole frame at the start of *buffer*, and remove it."""
    while len(buffer) >= head.size:
        kind, length = head.unpack_from(buffer)
        end = head.size + length
        if len(buffer) < end:
            return
        content = bytes(buffer[head.size : end])
        del buffer[:end]
        yield kind, content
