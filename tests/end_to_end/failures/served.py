"""The services of a platform on localhost: a GitHub, a model and a Hub, one of them perhaps behind a turnstile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from formulacode_dagster.operating.cancellation.tls import trusted

DEADLINE = 120.0
"""Seconds any one condition may take on a machine that is busy with other things."""


class Turnstile:
    """Lets so many POST requests through to *app*, then holds all others until it is opened."""

    def __init__(self, app: ASGIApp, after: int) -> None:
        self._app = app
        self._left = after
        self._opened = threading.Event()
        self.reached = threading.Event()

    def open(self) -> None:
        """Hold no request any more."""
        self._opened.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            self._left -= 1
            if self._left < 0:
                self.reached.set()
                await asyncio.to_thread(self._opened.wait)
        await self._app(scope, receive, send)


@dataclass(frozen=True)
class Served:
    """A GitHub, a model and a Hub on localhost, one of them perhaps behind a turnstile."""

    urls: Mapping[str, str]
    turnstile: Turnstile | None

    def calls(self, service: str) -> int:
        """Calls so far; of the model, questions about pull requests."""
        books = self._books(service)
        return int(books["chat_completions"] if service == "model" else books["total"])

    def probes(self) -> int:
        """Questions so far that find out what form the model understands."""
        return int(self._books("model")["probes"])

    def _books(self, service: str) -> dict[str, Any]:
        answer = httpx.get(f"{self.urls[service]}/_sandbox/calls", timeout=20, verify=trusted())
        books: dict[str, Any] = answer.raise_for_status().json()
        return books

    def wait_until_held(self) -> None:
        """Return when somebody stands at the turnstile."""
        assert self.turnstile is not None
        assert self.turnstile.reached.wait(DEADLINE), "nobody came to the turnstile"

    def release(self) -> None:
        """Open the turnstile."""
        assert self.turnstile is not None
        self.turnstile.open()
