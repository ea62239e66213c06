"""A guard before Dagster's web server, which executes mutations sent by GET, for any page and under any host name.

Any page that the operator visits can make the browser send requests to the UI. The guard refuses requests that a
browser marks as another site's, host names that DNS rebinding would use, and what a browser sends without a preflight:
mutations by GET, and POST with a content type other than JSON. It asks for no password: a reverse proxy does that,
whose header it can require. Programs such as curl send none of a browser's marks, and pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from formulacode_dagster.models.errors import ConfigurationError

LOOPBACK = (ip_network("127.0.0.1"), ip_network("::1"))
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}
FRAMES = "frame-ancestors 'self'"
"""A policy of its own, next to Dagster's: a browser enforces all that it gets."""
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?", re.IGNORECASE)
_JSON_TYPES = frozenset({"application/json", "application/graphql"})
"""Content types for which a browser asks first whether another site may send them."""
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_POLICY_VIOLATION = 1008


@dataclass(frozen=True)
class UiPolicy:
    """Names of the UI, and the header with which a reverse proxy reports who has logged in."""

    hosts: frozenset[str] = frozenset()
    login_header: str = ""
    users: frozenset[str] = frozenset()
    proxies: tuple[IPv4Network | IPv6Network, ...] = field(default=LOOPBACK)

    @classmethod
    def of(
        cls, hosts: tuple[str, ...], login_header: str, users: tuple[str, ...], proxies: tuple[str, ...]
    ) -> UiPolicy:
        """Return the policy of the settings' values; raises ConfigurationError."""
        try:
            networks = tuple(ip_network(proxy) for proxy in proxies)
        except ValueError as error:
            remedy = "Write addresses or networks such as 10.0.0.0/8 for FC_UI_PROXIES"
            raise ConfigurationError("FC_UI_PROXIES is invalid", why=str(error), remedy=remedy) from error
        if users and not login_header:
            raise ConfigurationError(
                "FC_UI_USERS is set without FC_UI_LOGIN_HEADER",
                remedy="Name the header in which the proxy sends the user",
            )
        return cls(frozenset(host.lower() for host in hosts), login_header, frozenset(users), networks)

    def is_own_host(self, name: str) -> bool:
        """Return True for localhost, addresses and named hosts: rebinding needs a name that its attacker owns."""
        bare = name.lower().removesuffix(".")
        if bare == "localhost" or bare.endswith(".localhost") or bare in self.hosts:
            return True
        try:
            ip_address(bare.strip("[]"))
        except ValueError:
            return False
        return True

    def is_proxy(self, address: str) -> bool:
        """Return True if a request from *address* may name the user."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self.proxies)


class UiGuard:
    """The ASGI application that answers refused requests itself, and passes the others on to *app*."""

    def __init__(self, app: ASGIApp, policy: UiPolicy) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        sending = _with_headers(send)
        if refusal := self._refusal(HTTPConnection(scope)):
            status, why = refusal
            if scope["type"] == "websocket":
                # before it is accepted, the server answers the handshake with 403
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": why})
            else:
                await PlainTextResponse(f"refused by the UI's guard: {why}\n", status)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _refusal(self, request: HTTPConnection) -> tuple[HTTPStatus, str] | None:
        headers, method = request.headers, str(request.scope.get("method", "GET"))
        path = request.scope["path"].rstrip("/")
        is_graphql = path.endswith("/graphql")
        hosts = headers.getlist("host")
        host = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            return HTTPStatus.BAD_REQUEST, "no valid Host"
        if not self._policy.is_own_host(host["name"]):
            return HTTPStatus.FORBIDDEN, f"the UI is not called {host['name']}; FC_UI_HOSTS lists its names"
        if _is_foreign(headers, method, is_navigable=not is_graphql and request.scope["type"] == "http"):
            return HTTPStatus.FORBIDDEN, "another site sent it"
        if any(not _is_origin_of(origin, hosts[0]) for origin in headers.getlist("origin")):
            return HTTPStatus.FORBIDDEN, "its Origin is another site; a reverse proxy has to pass Host on"
        if request.scope["type"] == "http":
            if is_graphql and method == "GET" and not all(map(_is_query, request.query_params.getlist("query"))):
                return HTTPStatus.METHOD_NOT_ALLOWED, "GET is for queries"
            if is_graphql and method == "POST" and not _is_json(headers):
                return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "write Content-Type: application/json"
        return None if path.endswith("/server_info") else self._not_logged_in(request)

    def _not_logged_in(self, request: HTTPConnection) -> tuple[HTTPStatus, str] | None:
        policy = self._policy
        if not policy.login_header:
            return None
        if request.client is None or not policy.is_proxy(request.client.host):
            return (
                HTTPStatus.UNAUTHORIZED,
                "it came past the proxy that logs users in; FC_UI_PROXIES lists its addresses",
            )
        named = request.headers.getlist(policy.login_header)
        if len(named) != 1 or not named[0]:
            return HTTPStatus.UNAUTHORIZED, "the proxy named no user"
        if policy.users and named[0] not in policy.users:
            return HTTPStatus.FORBIDDEN, "FC_UI_USERS does not list this user"
        return None


def _is_foreign(headers: Headers, method: str, *, is_navigable: bool) -> bool:
    """Return True if a browser says that another site is behind the request, other than by a link to a page."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    marks = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return not (is_navigable and method == "GET" and marks == ("navigate", "document"))


def _is_origin_of(origin: str, host: str) -> bool:
    """Return True if *origin* is a page of *host*, behind a proxy that ends TLS too."""
    parts = urlsplit(origin.lower())
    default = _DEFAULT_PORTS.get(parts.scheme)
    return default is not None and parts.netloc.removesuffix(f":{default}") == host.lower().removesuffix(f":{default}")


def _is_query(text: str) -> bool:
    """Return True if *text* has no operation that changes something; what cannot be read may."""
    try:
        document = parse(text, no_location=True, max_tokens=10_000)
    except (GraphQLError, RecursionError):
        return False
    operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    return all(operation.operation is OperationType.QUERY for operation in operations)


def _is_json(headers: Headers) -> bool:
    return [kind.partition(";")[0].strip().lower() in _JSON_TYPES for kind in headers.getlist("content-type")] == [True]


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(SECURITY_HEADERS)
            headers.append("Content-Security-Policy", FRAMES)
        await send(message)

    return sending
