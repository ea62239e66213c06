"""A door in Docker's API that lets Dagster's run launcher through, and nothing else.

Who may create containers as it likes has the machine: it mounts `/`. Dagster's webserver and daemon need to create one
kind alone, so they are given this door's address instead of the daemon's socket: containers of one image, on given
networks, with given volumes, without any privilege; and of these alone they may see, start, stop and remove.

The daemon takes keys of JSON without regard to case, and the last of equal ones. So what it is sent is never what came
in, but what was read and judged here, in which no object has two keys that the daemon could take for one.
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
_CONTAINER = re.compile(_NAME)
_MAY_SAY = frozenset(
    {"Cmd", "Env", "Entrypoint", "Hostname", "Image", "Labels", "NetworkingConfig", "HostConfig", "StopSignal"}
    | {"AttachStdout", "AttachStderr", "Volumes", "WorkingDir"}
)
"""Of the body that creates a container, spelt so; of the rest nothing, as `_is_said` has it."""
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
        host, networking = _object_of(body, "HostConfig"), _object_of(body, "NetworkingConfig")
        attached = _object_of(networking, "EndpointsConfig")
        said = [name for name, value in body.items() if _is_said(value) and name not in _MAY_SAY]
        said += [f"HostConfig.{name}" for name, value in host.items() if _is_said(value) and name not in _HOST_MAY_SAY]
        # Docker's client for Python names the network here too, without a word about it
        said += [f"NetworkingConfig.{name}" for name in _said(networking) - {"EndpointsConfig"}]
        # a `NetworkID` counts for more than the name that it is said of
        said += [f"NetworkingConfig.EndpointsConfig.{name}" for name, value in attached.items() if value]
        if said:
            return f"{', '.join(sorted(said))} may not be said"
        if body.get("Image") != self.image:
            return f"the image is not {self.image}"
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
        asked = f"{request.method} {request.url.path}"
        try:
            if _CREATING.fullmatch(asked):
                return await self._create(request, _read(await request.body()))
            if found := _CONNECTING.fullmatch(asked):
                return await self._connect(request, found[1], _read(await request.body()))
        except ValueError as error:
            return _refused(str(error))
        if found := next(filter(None, (shape.fullmatch(asked) for shape in _OF_CONTAINERS)), None):
            refusal = await self._unless_ours(found[1])
        elif found := _SHOWING_NETWORK.fullmatch(asked):
            refusal = await self._unless_of_runs(found[1])
        else:
            refusal = None if _ASKING.fullmatch(asked) else _refused(f"{asked} is nothing that launching runs takes")
        return refusal or await self._pass_on(request)

    async def _create(self, request: Request, said: Mapping[str, Any]) -> Response:
        if why := self._gate.refusal(said):
            return _refused(why)
        labels = {**_object_of(said, "Labels"), LABEL: self._gate.name}
        return await self._pass_on(request, {**said, "Labels": labels})

    async def _connect(self, request: Request, network: str, said: Mapping[str, Any]) -> Response:
        container = said.get("Container")
        if not isinstance(container, str) or not _CONTAINER.fullmatch(container):
            return _refused("no container is named as Container")
        if more := _said(said) - {"Container"}:
            return _refused(f"{', '.join(sorted(more))} may not be said")
        refusal = await self._unless_of_runs(network) or await self._unless_ours(container)
        return refusal or await self._pass_on(request, {"Container": container})

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

    async def _pass_on(self, request: Request, said: Mapping[str, Any] | None = None) -> Response:
        answer = await self._client.request(
            request.method,
            request.url.path,
            params=dict(request.query_params),
            json=said,
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


def _read(body: bytes) -> dict[str, Any]:
    """The object that *body* is; raises ValueError where it is none, or not the same to the daemon."""
    said = json.loads(body, object_pairs_hook=_without_doubles)
    if not isinstance(said, dict):
        raise ValueError("the body is no object of JSON")
    return said


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name.casefold() for name, _ in pairs}) < len(pairs):
        raise ValueError(f"the same key twice, but for case: {', '.join(sorted(name for name, _ in pairs))}")
    return dict(pairs)


def _object_of(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What *said* has as *name*, empty where it says nothing; raises ValueError where that is no object."""
    value = said.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{name} is no object of JSON")
    return value or {}


def _said(said: Mapping[str, Any]) -> set[str]:
    """The keys of *said* that tell the daemon anything: an empty object tells nothing."""
    return {name for name, value in said.items() if _is_said(value) and value != {}}


def _is_said(value: Any) -> bool:
    """Whether the daemon is told anything: by an empty list it is, `MaskedPaths: []` shows all of /proc."""
    return value is not None and value is not False


def _refused(why: str) -> Response:
    return JSONResponse({"message": f"refused by the launch gate: {why}"}, HTTPStatus.FORBIDDEN)


def main() -> None:
    """Serve on port 2375 of all addresses: for a network that the webserver and the daemon alone are on."""
    import uvicorn

    gate = Gate.from_environment(os.environ)
    uvicorn.run(app(gate), host="0.0.0.0", port=2375, log_level="warning", access_log=False)  # noqa: S104 - see above


if __name__ == "__main__":
    main()
