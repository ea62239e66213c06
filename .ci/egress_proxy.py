#!/usr/bin/env python3
"""Stands in for gost in the sidecar with which Harbor limits a container's network: a transparent proxy with a list.

Connections that the kernel redirects here go on to where they were meant to go, if the host that their first bytes name
(TLS: server name; HTTP: `Host`), or else their address, is on the list. Of its configuration, which is a file of the
sidecar, only the path of the list is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fnmatch
import ipaddress
import re
import socket
import struct
from pathlib import Path

SO_ORIGINAL_DST = 80
"""https://github.com/torvalds/linux/blob/master/include/uapi/linux/netfilter_ipv4.h"""
MARK = 114514
"""The sidecar's rules let connections with it pass."""
SNIFF_SECONDS = 5.0
CHUNK = 2**16
HOST = re.compile(rb"^host:[ \t]*([^\s:]+)", re.IGNORECASE | re.MULTILINE)


def named_host(first: bytes) -> str | None:
    """Return the host that the *first* bytes of a connection name, None if they name none."""
    if first[:1] == b"\x16":
        return _server_name(first)
    found = HOST.search(first)
    return found[1].decode("ascii", "replace") if found else None


def _server_name(hello: bytes) -> str | None:
    """Return the server name of a TLS hello: https://www.rfc-editor.org/rfc/rfc6066#section-3."""
    try:
        place = 43
        place += 1 + hello[place]
        place += 2 + struct.unpack_from("!H", hello, place)[0]
        place += 1 + hello[place]
        end = place + 2 + struct.unpack_from("!H", hello, place)[0]
        place += 2
        while place < end:
            kind, length = struct.unpack_from("!HH", hello, place)
            if kind == 0:
                size = struct.unpack_from("!H", hello, place + 7)[0]
                return hello[place + 9 : place + 9 + size].decode("ascii", "replace")
            place += 4 + length
    except (IndexError, struct.error):
        pass
    return None


def is_listed(host: str, targets: list[str]) -> bool:
    """Return True if *host*, a name or an address, is one of *targets*: names, wildcards, addresses, networks."""
    for target in targets:
        if fnmatch.fnmatchcase(host.lower(), target.lower()):
            return True
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(target, strict=False):
                return True
    return False


class Proxy:
    """A proxy for the hosts in a file, which is read again for each connection."""

    def __init__(self, allowed: Path) -> None:
        self._allowed = allowed

    async def serve(self, port: int) -> None:
        """Accept connections until cancelled."""
        server = await asyncio.start_server(self._handle, None, port)
        async with server:
            await server.serve_forever()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            address = _meant_for(writer.get_extra_info("socket"))
            first = b""
            with contextlib.suppress(TimeoutError):
                first = await asyncio.wait_for(reader.read(CHUNK), SNIFF_SECONDS)
            host = named_host(first) or address[0]
            if not is_listed(host, self._allowed.read_text().split()):
                return
            with socket.socket() as onward:
                onward.setblocking(False)
                onward.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
                await asyncio.get_running_loop().sock_connect(onward, address)
                their_reader, their_writer = await asyncio.open_connection(sock=onward)
                their_writer.write(first)
                await asyncio.gather(_relay(reader, their_writer), _relay(their_reader, writer))


def _meant_for(connection: socket.socket) -> tuple[str, int]:
    option = connection.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
    port, packed = struct.unpack_from("!2xH4s", option)
    return socket.inet_ntoa(packed), port


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError), contextlib.closing(writer):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()


def main() -> None:
    """Serve as the configuration says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-C", dest="configuration", type=Path, required=True)
    configuration = parser.parse_args().configuration.read_text()
    port = re.search(r'addr: ":(\d+)"', configuration)
    allowed = re.search(r"path: (\S+)", configuration)
    if port is None or allowed is None:
        parser.error("the configuration names no port, or no list")
    asyncio.run(Proxy(Path(allowed[1])).serve(int(port[1])))


if __name__ == "__main__":
    main()
