"""The standard input of a container: it ends, and the container with it, when the process that holds it is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .daemon import DockerDaemon

if TYPE_CHECKING:
    from docker.models.containers import Container


def command_that_waits(seconds: float) -> list[str]:
    """Return what a container runs to end with its standard input, and after so many *seconds* at the latest."""
    return ["bash", "-c", f"read -rt {int(seconds)}"]


class HeldInput:
    """The standard input of *container*, which was made with an open one."""

    def __init__(self, daemon: DockerDaemon, container: Container) -> None:
        self._daemon, self._container = daemon, container
        self._held: Any = None

    def hold(self) -> None:
        """Attach to it: when this process ends, however it does, so does the container."""
        self.release()
        with self._daemon.watched("hold a container"):
            self._held = self._container.attach_socket(params={"stdin": 1, "stream": 1})

    def release(self) -> None:
        """Let go of the container, which ends."""
        held, self._held = self._held, None
        if held is not None:
            # a file of a socket leaves the socket open
            connection = getattr(held, "_sock", None)
            held.close()
            if connection is not None:
                connection.close()
