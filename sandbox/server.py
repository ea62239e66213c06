"""Serve an ASGI application on localhost, in a thread of this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from formulacode_dagster.models.errors import OutsideSystemError

START_SECONDS = 15


class LocalServer:
    """A uvicorn server in a daemon thread; `url` is where it answers."""

    def __init__(self, app: ASGIApp, *, port: int = 0, name: str = "sandbox") -> None:
        self._name = name
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise OutsideSystemError(
                name, f"cannot listen on 127.0.0.1:{port}", why=str(error), remedy="Stop what listens there"
            ) from error
        # a request that hangs, as a client that was stopped leaves it, must not keep the server
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def start(self) -> LocalServer:
        """Start, and return once it answers; raises OutsideSystemError when it does not within 15 s."""
        self._thread.start()
        waited = threading.Event()
        for _ in range(START_SECONDS * 100):
            if self._server.started:
                return self
            if not self._thread.is_alive():
                break
            waited.wait(0.01)
        raise OutsideSystemError(self._name, f"did not start within {START_SECONDS} s")

    def stop(self) -> None:
        """Stop and wait for the thread."""
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()


@contextmanager
def serving(app: ASGIApp, *, port: int = 0, name: str = "sandbox") -> Iterator[str]:
    """Serve *app* for the length of a `with` block; yields its URL."""
    server = LocalServer(app, port=port, name=name).start()
    try:
        yield server.url
    finally:
        server.stop()
