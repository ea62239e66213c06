"""Serving an application on localhost."""

from __future__ import annotations

import socket

import httpx
import pytest
from starlette.applications import Starlette

from sandbox import server


def test_an_answer_is_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagle's algorithm holds the second packet of an answer back until the first is acknowledged, 40 ms later."""
    servers: list[server._Server] = []

    class Kept(server._Server):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            servers.append(self)

    monkeypatch.setattr(server, "_Server", Kept)
    with server.serving(Starlette()) as url, httpx.Client() as client:
        assert client.get(url).status_code == 404
        (connection,) = servers[0].server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
