"""Serve an ASGI application on localhost, in a thread of this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

from formulacode_dagster.models.errors import OutsideSystemError

START_SECONDS = 15
GRACE_SECONDS = 1
"""A request that hangs, as a client that was stopped leaves it, must not keep the server."""


class _Server(uvicorn.Server):
    """Tells when it answers and ends as soon as it is told, where uvicorn sleeps for tenths of a second in between."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()
        """It answers, or never will."""
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.settled.set()

    def end(self) -> None:
        """Stop answering; to be called from any thread."""
        self.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        # the tick renews the date in the headers
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - those of servers
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                # uvicorn tells nobody when the last one is through
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        await self.lifespan.shutdown()


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
        self._server = _Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", ws="none"))
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _run(self) -> None:
        try:
            asyncio.run(self._server.serve(sockets=[self._socket]))
        finally:
            self._server.settled.set()

    def start(self) -> LocalServer:
        """Start, and return once it answers; raises OutsideSystemError when it does not within 15 s."""
        self._thread.start()
        self._server.settled.wait(START_SECONDS)
        if not self._server.started:
            raise OutsideSystemError(self._name, f"did not start within {START_SECONDS} s")
        return self

    def stop(self) -> None:
        """Stop and wait for the thread."""
        self._server.end()
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
