"""Serve an ASGI application, on localhost by default, in a thread of this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

from formulacode_dagster.models.errors import OutsideSystemError

LOCALHOST = "127.0.0.1"
START_SECONDS = 15
GRACE_SECONDS = 1
"""A request that hangs, as a client that was stopped leaves it, must not keep the server."""


class _Server(uvicorn.Server):
    """Signals when it is ready and ends at once on request, where uvicorn polls every few tenths of a second."""

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
                # uvicorn does not signal the end of the last request
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        await self.lifespan.shutdown()


@contextmanager
def serving(app: ASGIApp, *, host: str = LOCALHOST, port: int = 0, name: str = "sandbox") -> Iterator[str]:
    """Serve *app* by uvicorn, in a daemon thread, for the length of a `with` block; yields its URL once it answers.

    *host* is an address of this machine, or a name that others know it by.

    Raises OutsideSystemError when *port* is taken, or the server does not answer within 15 s.
    """
    # named, or asyncio does not take it for TCP, and answers of two packets wait 40 ms for an acknowledgement
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise OutsideSystemError(
                name, f"cannot listen on {host}:{port}", why=str(error), remedy="Stop what listens there"
            ) from error
        server = _Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", ws="none"))
        thread = threading.Thread(target=_run, args=(server, listener), name=name, daemon=True)
        thread.start()
        try:
            server.settled.wait(START_SECONDS)
            if not server.started:
                raise OutsideSystemError(name, f"did not start within {START_SECONDS} s")
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.end()
            thread.join(timeout=10)


def _run(server: _Server, listener: socket.socket) -> None:
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        server.settled.set()
