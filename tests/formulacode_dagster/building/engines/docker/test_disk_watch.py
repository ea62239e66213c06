"""When the size of a container's written layer is polled; no daemon is used."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from formulacode_dagster.building.engines.docker import disk
from formulacode_dagster.building.engines.docker.commands import Ended
from formulacode_dagster.building.engines.docker.session import DockerSession
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits

MB = 1024 * 1024


class Container:
    """One whose written layer has `written` bytes."""

    id = "1"

    def __init__(self) -> None:
        self.written = self.looks = self.restarts = 0
        self.client = SimpleNamespace(api=SimpleNamespace(containers=self._containers))

    def _containers(self, **_: object) -> list[dict[str, int]]:
        self.looks += 1
        return [{"SizeRw": self.written}]

    def restart(self, *, timeout: float) -> None:
        assert timeout == 0
        self.restarts += 1


class Channel:
    """Commands that write *size* bytes each and end after *seconds*."""

    def __init__(self, container: Container, size: int, seconds: float = 0.0) -> None:
        self.container, self.size, self.seconds = container, size, seconds
        self.ran = 0

    def run(self, *_: object, **__: object) -> Ended:
        self.ran += 1
        self.container.written += self.size
        time.sleep(self.seconds)
        return Ended(Completed(0, b"", b"", 0.0))


def session_in(container: Container, size: int, seconds: float = 0.0) -> tuple[DockerSession, Channel]:
    daemon: Any = None
    made: Any = container
    session = DockerSession(daemon, made, ResourceLimits(disk_mb=300), "image", "image")
    channel: Any = Channel(container, size, seconds)
    session.commands = channel
    return session, channel


def run_all(session: DockerSession, count: int) -> None:
    for _ in range(count):
        session.run(["writer"], timeout=60)


def test_commands_shorter_than_the_pause_between_two_looks_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disk, "LOOK_SECONDS", 0.2)
    session, channel = session_in(container := Container(), 100 * MB, seconds=0.05)
    with pytest.raises(ItemFailure, match=r"writer wrote \d+ MB|had written") as caught:
        run_all(session, 100)
    assert caught.value.kind == "disk"
    assert channel.ran < 20
    assert container.restarts == 1


def test_commands_in_quick_succession_are_not_looked_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "LOOK_SECONDS", 60.0)
    session, channel = session_in(container := Container(), MB)
    run_all(session, 50)
    assert (channel.ran, container.looks) == (50, 0)


def test_a_long_command_is_ended_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "LOOK_SECONDS", 0.05)
    session, _ = session_in(container := Container(), 400 * MB, seconds=1.0)
    with pytest.raises(ItemFailure, match="writer was ended after it had written 419 MB"):
        session.run(["writer"], timeout=60)
    assert container.restarts == 1
