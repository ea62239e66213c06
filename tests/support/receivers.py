"""Servers on localhost that take what channels send, and keep it."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult


@dataclass
class Received:
    """Received requests, in order; the first of `statuses` answers, or 200."""

    url: str = ""
    payloads: list[Any] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)


@contextmanager
def receiving_posts(*statuses: int) -> Iterator[Received]:
    """A server that takes POSTs of JSON."""
    received = Received(statuses=list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.payloads.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(received.statuses.pop(0) if received.statuses else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.url = f"http://127.0.0.1:{server.server_port}/hook/s3cret-path"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            yield received
        finally:
            server.shutdown()


@dataclass
class Mailbox:
    """Mails received by a server."""

    host: str = ""
    messages: list[Message] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address.startswith("nobody@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.messages.append(message_from_bytes(envelope.content))
        self.recipients.append(envelope.rcpt_tos)
        return "250 taken"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, login: Any) -> AuthResult:
        """Return True if the password is that of `fc`."""
        self.logins.append(login.login + b" " + login.password)
        return AuthResult(success=login.password == b"p@ssw0rd", handled=False)


@contextmanager
def receiving_mail(scheme: str = "smtp", trust: ssl.SSLContext | None = None) -> Iterator[Mailbox]:
    """A mail server; with the certificate in *trust* it wants a login, after STARTTLS or from its first byte."""
    box, loop = Mailbox(), asyncio.new_event_loop()
    wants: dict[str, Any] = {}
    if trust is not None:
        # of a connection that was secured from its first byte the protocol does not know that it was
        wants = {"authenticator": box.authenticate, "auth_required": True, "auth_require_tls": scheme == "smtp"}
        wants |= {"tls_context": trust} if scheme == "smtp" else {}
    wrapped = trust if scheme == "smtps" else None
    serving = loop.create_server(lambda: SMTP(box, loop=loop, **wants), "127.0.0.1", 0, ssl=wrapped)
    server = loop.run_until_complete(serving)
    box.host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield box
    finally:
        # in the loop's own thread: in another, a connection that ends meanwhile closes it a second time
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
