"""The ASGI application."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from . import answers
from .answers import Answer
from .context import Account, RequestContext
from .faults import Faults, FaultSource
from .gateway import Gateway, Handler, Incoming, read_body, rest_call
from .limits import Limits, Resource
from .rest import ENDPOINTS, rate_limit
from .served_folder import ServedFolder

GRAPHQL = "graphql"


def app(
    served: Path | ServedFolder,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    faults: Faults = Faults(),  # noqa: B008 - frozen
    tokens: Mapping[str, Account] | None = None,
    is_server: bool = False,
) -> Starlette:
    """Return a GitHub over *served*: a folder of bare repositories `owner/name.git` and its `sandbox.json`, if there is
    one.

    *tokens* are the valid ones, with their users; None accepts any, each as a separate user. *is_server* serves it as
    an Enterprise Server: REST at `/api/v3`, GraphQL at `/api/graphql`, and no `/rate_limit`, as where limits are off.

    The books are in `state.accounting`, and at `/_sandbox/calls`; `POST /_sandbox/reset` clears them. `POST
    /_sandbox/clock` with `{"seconds": …}` advances the clock of the limits, and returns its time. Raises
    ConfigurationError if *folder* is missing, or its side file malformed.
    """
    folder = served if isinstance(served, ServedFolder) else ServedFolder(served)
    gateway = Gateway(folder, limits, FaultSource(faults), tokens)

    async def books(_request: Request) -> JSONResponse:
        return JSONResponse(gateway.accounting.as_json())

    async def reset(_request: Request) -> JSONResponse:
        gateway.reset()
        return JSONResponse(gateway.accounting.as_json())

    async def clock(request: Request) -> JSONResponse:
        gateway.put_forward(float((await request.json())["seconds"]))
        return JSONResponse({"now": gateway.now()})

    endpoints = [
        *(_route(gateway, path, resource, handler) for path, resource, handler in ENDPOINTS),
        *([] if is_server else [_route(gateway, "/rate_limit", Resource.CORE, rate_limit, free=True)]),
    ]
    graphql = Route("/api/graphql" if is_server else "/graphql", _graphql(gateway), methods=["POST"])
    routes = [
        graphql,
        Route("/_sandbox/calls", books),
        Route("/_sandbox/reset", reset, methods=["POST"]),
        Route("/_sandbox/clock", clock, methods=["POST"]),
        *([Mount("/api/v3", routes=endpoints)] if is_server else endpoints),
    ]
    application = Starlette(routes=routes, exception_handlers={404: _nowhere})
    application.state.accounting = gateway.accounting
    application.state.gateway = gateway
    return application


def _graphql(gateway: Gateway) -> Callable[[Request], Any]:
    async def call(asked: RequestContext, incoming: Incoming) -> Answer:
        """Prepared before it is paid, paid before it is executed."""
        from sandbox.github.graphql.execution import Prepared, execute, prepare

        if incoming.body is None:
            return answers.refusal(400, "Problems parsing JSON")
        prepared = await run_in_threadpool(prepare, asked, incoming.body)
        if not isinstance(prepared, Prepared):
            return answers.ok(prepared)
        login = asked.account.login if asked.account else None
        rate = gateway.budgets.charge(login, Resource.GRAPHQL, prepared.points)
        gateway.accounting.points[Resource.GRAPHQL] += prepared.points
        body = answers.encode(await run_in_threadpool(execute, asked, prepared, rate))
        heaviest = asked.limits.heaviest_answer
        return Answer(200, body) if heaviest is None or len(body) <= heaviest else answers.bad_gateway()

    async def endpoint(request: Request) -> Response:
        from sandbox.github.graphql.execution import operation_name

        try:
            body = json.loads(await read_body(request))
        except ValueError:
            body = None
        name = operation_name(body)
        names = (GRAPHQL, f"{GRAPHQL} {name}") if name else (GRAPHQL,)
        incoming = Incoming({}, {}, request.headers.get("accept", ""), str(request.url), body)
        return await gateway.answer(request, names, Resource.GRAPHQL, incoming, call)

    return endpoint


def _route(gateway: Gateway, path: str, resource: Resource, handler: Handler, *, free: bool = False) -> Route:
    call, template = rest_call(handler), path.replace(":path", "").replace(":int", "")

    async def answer(request: Request) -> Response:
        incoming = Incoming(
            {name: str(value) for name, value in request.path_params.items()},
            dict(request.query_params),
            request.headers.get("accept", ""),
            str(request.url),
        )
        return await gateway.answer(request, (f"GET {template}",), resource, incoming, call, free=free)

    return Route(path, answer, methods=["GET"])


async def _nowhere(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the handler's signature
    refused = answers.not_found()
    return Response(refused.body, refused.status, media_type=refused.media_type)
