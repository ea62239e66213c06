#!/usr/bin/env python3
"""Forwards the sockets of the host inside an agent's container, which has no network. Runs as a standalone script.

`bridge.py serve SECONDS PORT` is the container's first process: it forwards connections to the port of localhost to the
forwarder, and ends the container after SECONDS, even when its host is gone. `bridge.py` without arguments, as the agent
calls it, requests a build of the workspace from the relay, prints its log and exits with 0 if the build passes.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
MODEL_SOCKET = "model.sock"
BUILD_SOCKET = "build.sock"
REQUEST = b"build\n"
CHUNK = 65536


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of *reader*."""
    with suppress(ConnectionError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Connect one caller with the forwarder."""
    try:
        to_reader, to_writer = await asyncio.open_unix_connection(str(HERE / MODEL_SOCKET))
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))
    to_writer.close()
    writer.close()


async def serve(seconds: float, port: int) -> None:
    """Hand on for so many seconds."""
    async with await asyncio.start_server(hand_on, "127.0.0.1", port):
        await asyncio.sleep(seconds)


def build() -> int:
    """Request a build; return 0 if it passes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as relay:
        relay.connect(str(HERE / BUILD_SOCKET))
        relay.sendall(REQUEST)
        relay.shutdown(socket.SHUT_WR)
        answer = json.loads(b"".join(iter(lambda: relay.recv(CHUNK), b"")))
    sys.stdout.write(f"{answer['log']}\nended at: {answer['stage']}\n")
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(float(sys.argv[2]), int(sys.argv[3])))
    else:
        sys.exit(build())
