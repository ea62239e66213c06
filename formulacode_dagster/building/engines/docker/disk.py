"""Keeps a command in a container from filling the daemon's disk.

Docker limits a container's disk only on few file systems (xfs with project quotas, btrfs, zfs), so this polls the size
of the written layer while the command runs. A short command ends before the first poll.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from docker.models.containers import Container

LOOK_SECONDS = 5.0


class DiskWatch:
    """For the length of a `with` block, end what runs in *container* once it has written more than *limit* bytes."""

    def __init__(self, container: Container, limit: int) -> None:
        self._container = container
        self._limit = limit
        self._over = threading.Event()
        self.written: int | None = None
        """Bytes, when they were too many."""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        import docker.errors
        import requests.exceptions

        while not self._over.wait(LOOK_SECONDS):
            # whoever runs the command hears of a daemon that is gone
            with suppress(docker.errors.DockerException, requests.exceptions.RequestException):
                written = self._size()
                if written > self._limit:
                    self.written = written
                    self._container.restart(timeout=0)
                    return

    def _size(self) -> int:
        client = self._container.client
        if client is None:
            return 0
        containers = client.api.containers(all=True, size=True, filters={"id": str(self._container.id)})
        return max((int(container.get("SizeRw", 0)) for container in containers), default=0)
