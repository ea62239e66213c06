"""The books of a sandbox service: how many requests it has answered, at `/_sandbox/calls`."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/_sandbox/calls"


class CallCounter:
    """Counts requests by method; the books themselves are not counted."""

    def __init__(self) -> None:
        self._by_method: Counter[str] = Counter()

    def route(self) -> Route:
        """The route that shows the books."""
        return Route(PATH, self._show)

    def middleware(self, app: ASGIApp) -> ASGIApp:
        """Wrap *app* so that its requests are counted."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] != PATH:
                self._by_method[scope["method"]] += 1
            await app(scope, receive, send)

        return counted

    async def _show(self, request: Request) -> JSONResponse:  # noqa: ARG002 - the route's signature
        return JSONResponse({"total": self._by_method.total(), "by_method": dict(self._by_method)})
