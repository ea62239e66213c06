"""A door in Docker's API that lets Dagster's run launcher through, and nothing else.

Who may create containers as it likes has the machine: it mounts `/`. Dagster's webserver and daemon need to create one
kind alone, so they are given this door's address instead of the daemon's socket: containers of one image, on given
networks, with given volumes, without any privilege; and of these alone they may see, start, stop and remove.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from formulacode_dagster.models.errors import ConfigurationError

LABEL = "formulacode.launched"
"""Of every container that was created through a door: which one."""
SOCKET = "/var/run/docker.sock"
TIMEOUT_SECONDS = 120
_VERSION = r"(?:/v1\.[0-9]+)?"
_NAME = r"([a-zA-Z0-9][a-zA-Z0-9_.-]*)"
_ASKING = re.compile(rf"(?:GET|HEAD) {_VERSION}/(?:_ping|version)")
_CREATING = re.compile(rf"POST {_VERSION}/containers/create")
_OF_CONTAINERS = (
    re.compile(rf"GET {_VERSION}/containers/{_NAME}/json"),
    re.compile(rf"POST {_VERSION}/containers/{_NAME}/(?:start|stop|kill|wait)"),
    re.compile(rf"DELETE {_VERSION}/containers/{_NAME}"),
)
_SHOWING_NETWORK = re.compile(rf"GET {_VERSION}/networks/{_NAME}")
_CONNECTING = re.compile(rf"POST {_VERSION}/networks/{_NAME}/connect")
_MAY_SAY = frozenset(
    {"Cmd", "Env", "Entrypoint", "Hostname", "Image", "Labels", "NetworkingConfig", "HostConfig", "StopSignal"}
    | {"AttachStdout", "AttachStderr", "Volumes", "WorkingDir"}
)
"""Of the body that creates a container; the rest must be empty."""
_HOST_MAY_SAY = frozenset(
    {"AutoRemove", "Binds", "CapDrop", "Init", "Memory", "NanoCpus", "NetworkMode", "PidsLimit", "ReadonlyRootfs"}
    | {"SecurityOpt", "Tmpfs"}
)
_SECURITY = frozenset({"no-new-privileges", "no-new-privileges:true"})


@dataclass(frozen=True)
class Gate:
    """Which containers may be created: of *image*, on *networks*, with *binds* (`volume:/path:mode`), labelled so."""

    name: str
    image: str
    networks: frozenset[str]
    binds: frozenset[str]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Gate:
        """As FC_GATE_NAME, FC_GATE_IMAGE, FC_GATE_NETWORKS and FC_GATE_BINDS say; raises ConfigurationError."""
        names = ("FC_GATE_NAME", "FC_GATE_IMAGE", "FC_GATE_NETWORKS", "FC_GATE_BINDS")
        if missing := [name for name in names if not environment.get(name)]:
            raise ConfigurationError(f"{', '.join(missing)} not set", remedy="See deploy/compose/compose.yaml")
        name, image, networks, binds = (environment[name] for name in names)
        return cls(name, image, frozenset(networks.split()), frozenset(binds.split()))

    def refusal(self, body: Mapping[str, Any]) -> str:
        """Why a container may not be created as *body* says; empty where it may."""
        host: Mapping[str, Any] = body.get("HostConfig") or {}
        said = [name for name, value in body.items() if value and name not in _MAY_SAY]
        said += [f"HostConfig.{name}" for name, value in host.items() if value and name not in _HOST_MAY_SAY]
        if said:
            return f"{', '.join(sorted(said))} may not be said"
        if body.get("Image") != self.image:
            return f"the image is not {self.image}"
        attached = (body.get("NetworkingConfig") or {}).get("EndpointsConfig") or {}
        if strange := {host.get("NetworkMode"), *attached} - self.networks:
            return f"no network of runs: {', '.join(sorted(map(str, strange)))}"
        if strange := set(host.get("Binds") or ()) - self.binds:
            return f"no volume of runs: {', '.join(sorted(strange))}"
        if strange := set(host.get("SecurityOpt") or ()) - _SECURITY:
            return f"security is not loosened: {', '.join(sorted(strange))}"
        return ""


class _Door:
    """The requests that a gate lets through to a daemon."""

    def __init__(self, gate: Gate, client: httpx.AsyncClient) -> None:
        self._gate = gate
        self._client = client

    async def answer(self, request: Request) -> Response:
        asked, body = f"{request.method} {request.url.path}", await request.body()
        if _CREATING.fullmatch(asked):
            return await self._create(request, body)
        if found := next(filter(None, (shape.fullmatch(asked) for shape in _OF_CONTAINERS)), None):
            refusal = await self._unless_ours(found[1])
        elif found := _SHOWING_NETWORK.fullmatch(asked):
            refusal = await self._unless_of_runs(found[1])
        elif found := _CONNECTING.fullmatch(asked):
            container = str(json.loads(body)["Container"])
            refusal = await self._unless_of_runs(found[1]) or await self._unless_ours(container)
        else:
            refusal = None if _ASKING.fullmatch(asked) else _refused(f"{asked} is nothing that launching runs takes")
        return refusal or await self._pass_on(request, body)

    async def _create(self, request: Request, body: bytes) -> Response:
        said = json.loads(body)
        if why := self._gate.refusal(said):
            return _refused(why)
        said["Labels"] = {**(said.get("Labels") or {}), LABEL: self._gate.name}
        return await self._pass_on(request, json.dumps(said).encode())

    async def _unless_ours(self, container: str) -> Response | None:
        answer = await self._client.get(f"/containers/{container}/json")
        if answer.status_code != HTTPStatus.OK:
            return Response(answer.content, answer.status_code, media_type="application/json")
        labels = answer.json()["Config"]["Labels"] or {}
        return None if labels.get(LABEL) == self._gate.name else _refused(f"{container} is no run of {self._gate.name}")

    async def _unless_of_runs(self, network: str) -> Response | None:
        answer = await self._client.get(f"/networks/{network}")
        if answer.status_code != HTTPStatus.OK:
            return Response(answer.content, answer.status_code, media_type="application/json")
        return None if answer.json()["Name"] in self._gate.networks else _refused(f"{network} is no network of runs")

    async def _pass_on(self, request: Request, body: bytes) -> Response:
        answer = await self._client.request(
            request.method,
            request.url.path,
            params=dict(request.query_params),
            content=body,
            headers={"content-type": "application/json"} if body else {},
        )
        kept = {name: answer.headers[name] for name in ("content-type", "api-version") if name in answer.headers}
        return Response(answer.content, answer.status_code, kept)


def app(gate: Gate, transport: httpx.AsyncBaseTransport | None = None) -> Starlette:
    """*gate* over HTTP, before the daemon of `SOCKET` or of *transport*."""
    client = httpx.AsyncClient(
        transport=transport or httpx.AsyncHTTPTransport(uds=SOCKET), base_url="http://docker", timeout=TIMEOUT_SECONDS
    )
    door = _Door(gate, client)

    @asynccontextmanager
    async def closing(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    methods = ["GET", "HEAD", "POST", "PUT", "DELETE"]
    return Starlette(routes=[Route("/{path:path}", door.answer, methods=methods)], lifespan=closing)


def _refused(why: str) -> Response:
    return JSONResponse({"message": f"refused by the launch gate: {why}"}, HTTPStatus.FORBIDDEN)


def main() -> None:
    """Serve on port 2375 of all addresses: for a network that the webserver and the daemon alone are on."""
    import uvicorn

    gate = Gate.from_environment(os.environ)
    uvicorn.run(app(gate), host="0.0.0.0", port=2375, log_level="warning", access_log=False)  # noqa: S104 - see above


if __name__ == "__main__":
    main()
