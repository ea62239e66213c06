"""The guard before Dagster's UI: refusals one by one, and a real server whose websockets still work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.orchestration.ui.guard import UiGuard, UiPolicy
from formulacode_dagster.orchestration.ui.webserver import SERVER
from tests.support.demo import Ui
from tests.support.webservers import webserver_of

JSON = {"Content-Type": "application/json"}
PAGE = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
OPEN = UiPolicy(frozenset({"ui.example"}))
LOGIN = UiPolicy.of((), "X-User", ("ada",), ("10.0.0.0/8",))
PROTOCOL = [Subprotocol("graphql-ws")]


def _ask(
    policy: UiPolicy, method: str, path: str, headers: Mapping[str, str] = {}, client: str = "127.0.0.1"
) -> httpx.Response:
    async def ask() -> httpx.Response:
        app = Starlette(routes=[Route("/{path:path}", _answer, methods=["GET", "POST"])])
        transport = httpx.ASGITransport(UiGuard(app, policy), client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:3000") as asked:
            return await asked.request(method, path, headers=headers)

    return asyncio.run(ask())


async def _answer(_: Request) -> Response:
    return PlainTextResponse("passed on", headers={"X-Frame-Options": "ALLOWALL"})


@pytest.mark.parametrize(
    ("status", "method", "path", "headers"),
    [
        (200, "GET", "/runs", {}),
        (200, "GET", "/graphql?query={version}", {}),
        (405, "GET", "/graphql?query=mutation{a}", {}),
        (405, "GET", "/prefix/graphql/?query=query+a{b}+mutation+c{d}&operationName=c", {}),
        (405, "GET", "/graphql?query={version}&query=mutation{a}", {}),
        (405, "GET", "/graphql?query=subscription{a}", {}),
        (405, "GET", "/graphql?query=" + "{a" * 5000, {}),
        (200, "POST", "/graphql", JSON),
        (200, "POST", "/graphql", {"Content-Type": "application/json; charset=utf-8"}),
        (415, "POST", "/graphql?query=mutation{a}", {}),
        (415, "POST", "/graphql", {"Content-Type": "text/plain; application/json"}),
        (403, "GET", "/runs", {"Host": "evil.example:3000"}),
        (400, "GET", "/runs", {"Host": "evil.example@localhost"}),
        (400, "GET", "/runs", {"Host": ""}),
        (200, "GET", "/runs", {"Host": "UI.example"}),
        (200, "GET", "/runs", {"Host": "[::1]:3000"}),
        (200, "GET", "/runs", {"Host": "192.168.1.5:3000"}),
        (200, "POST", "/graphql", {**JSON, "Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-origin"}),
        (200, "POST", "/graphql", {**JSON, "Host": "ui.example", "Origin": "https://ui.example"}),
        (403, "POST", "/graphql", {**JSON, "Origin": "http://localhost:8888"}),
        (403, "POST", "/report_asset_materialization/a", {"Origin": "https://evil.example"}),
        (403, "POST", "/graphql", {**JSON, "Origin": "null"}),
        (403, "GET", "/runs", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}),
        (
            403,
            "GET",
            "/runs",
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        ),
        # a link in a chat or a mail
        (200, "GET", "/runs/1", {"Sec-Fetch-Site": "cross-site", **PAGE}),
        (403, "GET", "/graphql?query={version}", {"Sec-Fetch-Site": "cross-site", **PAGE}),
        (403, "POST", "/runs/1", {"Sec-Fetch-Site": "cross-site", **PAGE}),
    ],
)
def test_it_passes_on_what_the_ui_itself_sends(status: int, method: str, path: str, headers: Mapping[str, str]) -> None:
    answer = _ask(OPEN, method, path, headers)
    assert answer.status_code == status, answer.text
    assert (answer.text == "passed on") == (status == 200)
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"


@pytest.mark.parametrize(
    ("status", "user", "client"),
    [(200, "ada", "10.1.2.3"), (403, "eve", "10.1.2.3"), (401, "", "10.1.2.3"), (401, "ada", "192.168.1.9")],
)
def test_a_login_is_believed_only_from_the_proxy(status: int, user: str, client: str) -> None:
    assert _ask(LOGIN, "GET", "/runs", {"X-User": user}, client).status_code == status
    assert _ask(LOGIN, "GET", "/server_info", {}, client).status_code == 200, "probes have no user"


def test_a_policy_that_protects_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="FC_UI_PROXIES is invalid"):
        UiPolicy.of((), "X-User", (), ("proxy.example",))
    with pytest.raises(ConfigurationError, match="FC_UI_USERS is set without"):
        UiPolicy.of((), "", ("ada",), ())


@pytest.fixture(scope="module", params=[SERVER, (*SERVER, "dev")], ids=["webserver", "dev"])
def ui(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    with webserver_of(request.param, tmp_path_factory.mktemp("ui") / "home", FC_UI_HOSTS="ui.example") as ui:
        yield ui


@pytest.mark.slow
def test_a_real_server_is_guarded(ui: Ui) -> None:
    limit = 'mutation { setConcurrencyLimit(concurrencyKey: "a", limit: 1) }'
    assert httpx.get(f"{ui.url}/graphql", params={"query": limit}).status_code == 405
    assert httpx.post(f"{ui.url}/graphql", params={"query": limit}).status_code == 415
    assert httpx.get(f"{ui.url}/server_info", headers={"Host": "evil.example"}).status_code == 403
    assert httpx.get(f"{ui.url}/server_info", headers={"Host": "ui.example"}).status_code == 200
    assert ui.graphql("{ instance { concurrencyLimits { concurrencyKey } } }")["instance"]["concurrencyLimits"] == []
    # the same mutation, as the UI sends it
    assert ui.graphql(limit) == {"setConcurrencyLimit": True}


@pytest.mark.slow
def test_websockets_work_for_the_ui_only(ui: Ui) -> None:
    address = ui.url.replace("http", "ws") + "/graphql"
    with connect(address, subprotocols=PROTOCOL, origin=ui.url) as socket:  # type: ignore[arg-type]
        socket.send(json.dumps({"type": "connection_init"}))
        assert json.loads(socket.recv(30)) == {"type": "connection_ack"}
    with (
        pytest.raises(InvalidStatus, match="403"),
        connect(address, subprotocols=PROTOCOL, origin="http://evil.example"),
    ):  # type: ignore[arg-type]
        pass
