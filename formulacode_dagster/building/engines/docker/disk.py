"""Keeps the commands in a container from filling the daemon's disk.

Docker limits a container's disk only on few file systems (xfs with project quotas, btrfs, zfs), so this polls the size
of the written layer: while a command runs, and before it starts if the last poll was long ago. Short commands end
before they are polled.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from docker.models.containers import Container

LOOK_SECONDS = 5.0


class DiskWatch:
    """For the length of each `with` block, end what runs in *container* once more than *limit* bytes are written."""

    def __init__(self, container: Container, limit: int) -> None:
        self._container = container
        self._limit = limit
        self._looked_at = time.monotonic()
        self.written: int | None = None
        """Bytes, when they were too many."""

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def look_if_due(self) -> None:
        """Look, unless the last look is recent."""
        if self._seconds_left <= 0:
            self._look()

    @property
    def _seconds_left(self) -> float:
        """Seconds until the next look."""
        return self._looked_at + LOOK_SECONDS - time.monotonic()

    def _watch(self) -> None:
        while not self._over.wait(max(0.0, self._seconds_left)):
            self._look()
            if self.written is not None:
                return

    def _look(self) -> None:
        import docker.errors
        import requests.exceptions

        # whoever runs the command hears of a daemon that is gone
        with suppress(docker.errors.DockerException, requests.exceptions.RequestException):
            written = self._size()
            if written > self._limit:
                self.written = written
                self._container.restart(timeout=0)
        self._looked_at = time.monotonic()

    def _size(self) -> int:
        client = self._container.client
        if client is None:
            return 0
        containers = client.api.containers(all=True, size=True, filters={"id": str(self._container.id)})
        return max((int(container.get("SizeRw", 0)) for container in containers), default=0)
