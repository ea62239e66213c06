"""Runs commands in a container by its `command_server`: a command of the daemon's own costs 0.1 s of the processor."""

from __future__ import annotations

import json
import queue
import struct
import threading
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
_FRAME = struct.Struct("!cI")

Frames = queue.SimpleQueue[tuple[bytes, bytes] | None]
"""Kinds and contents as they come; None at the end."""


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
    """Requests to, and answers from, the command server of *container*, which ends with the holder of its input."""

    def __init__(self, daemon: DockerDaemon, container: Container) -> None:
        super().__init__(daemon, container, outputs=True)
        self._frames: Frames = queue.SimpleQueue()

    def hold(self) -> None:
        """Attach to the container."""
        super().hold()
        self._frames = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self.held, self._frames), daemon=True).start()

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
            except TimeoutError:
                timed_out, is_over = True, False
        seconds = time.monotonic() - started
        completed = Completed(rc, bytes(outputs[b"o"]), bytes(outputs[b"e"]), seconds, timed_out)
        return Ended(completed, with_container=is_over, survivors=survivors)

    def _send(self, request: bytes) -> None:
        # whoever is gone says so by the end of the frames
        with suppress(OSError):
            self.connection.sendall(request)

    def _answer(self, deadline: float) -> Iterator[tuple[bytes, bytes]]:
        """Yield frames up to the last of a command, or until the container ends. Raises TimeoutError."""
        while True:
            try:
                frame = self._frames.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if frame is None:
                # the next command hears of it, too
                self._frames.put(None)
                return
            yield frame
            if frame[0] == b"x":
                return


def _read(held: Any, frames: Frames) -> None:
    """Take frames out of the daemon's until the stream ends, however it does."""
    from docker.utils.socket import STDOUT, frames_iter

    buffer = bytearray()
    with suppress(OSError, ValueError):
        for stream, content in frames_iter(held, tty=False):  # type: ignore[no-untyped-call]  # docker has no types
            if stream != STDOUT:
                # only a server that fails writes there
                frames.put((b"e", content))
                continue
            buffer += content
            while len(buffer) >= _FRAME.size:
                kind, length = _FRAME.unpack_from(buffer)
                if len(buffer) < _FRAME.size + length:
                    break
                frames.put((kind, bytes(buffer[_FRAME.size : _FRAME.size + length])))
                del buffer[: _FRAME.size + length]
    frames.put(None)
