"""The standard input of a container: it ends, and the container with it, when the process that holds it is gone."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .daemon import DockerDaemon

if TYPE_CHECKING:
    from docker.models.containers import Container


def command_that_waits(seconds: float) -> list[str]:
    """Return what a container runs to end with its standard input, and after so many *seconds* at the latest."""
    return ["bash", "-c", f"read -rt {int(seconds)}"]


class HeldInput:
    """The standard input of *container*, which was made with an open one; with its *outputs*, if they are wanted."""

    def __init__(self, daemon: DockerDaemon, container: Container, *, outputs: bool = False) -> None:
        self._daemon, self._container = daemon, container
        self._streams = {"stdin": 1, "stream": 1} | ({"stdout": 1, "stderr": 1} if outputs else {})
        self.held: Any = None

    @property
    def connection(self) -> Any:
        """The socket itself: what the SDK returns may be a file of it."""
        return getattr(self.held, "_sock", self.held)

    def hold(self) -> None:
        """Attach to it: when this process ends, however it does, so does the container."""
        self.release()
        with self._daemon.watched("hold a container"):
            self.held = self._container.attach_socket(params=self._streams)

    def release(self) -> None:
        """Let go of the container, which ends."""
        connection, held, self.held = self.connection, self.held, None
        if held is not None:
            # whoever reads from it elsewhere would not hear of a close
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            # a TLS connection stays open as long as the answer that brought it, a file of a socket leaves that open
            if (response := getattr(held, "_response", None)) is not None:
                response.close()
            held.close()
            connection.close()
