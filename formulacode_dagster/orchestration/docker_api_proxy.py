"""A proxy for Docker's API that admits only Dagster's run launcher.

Unrestricted creation of containers amounts to root on the machine: a container can mount `/`. Dagster's webserver and
daemon need only one kind, so they get this proxy's address instead of the daemon's socket: containers of one image, on
given networks, with given volumes, without privileges; and only these they may inspect, start, stop and remove.

The daemon ignores case in keys of JSON, and takes the last of equal ones. So it never gets the original body, but the
parsed and checked one, in which no object has two keys that the daemon could confuse.
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
"""Label of every container created through a proxy: its name."""
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
"""Allowed keys in the body of a creation request, in this spelling; any other must be empty, see `_is_said`."""
_HOST_MAY_SAY = frozenset(
    {"AutoRemove", "Binds", "CapDrop", "Init", "Memory", "NanoCpus", "NetworkMode", "PidsLimit", "ReadonlyRootfs"}
    | {"SecurityOpt", "Tmpfs"}
)
_SECURITY = frozenset({"no-new-privileges", "no-new-privileges:true"})


@dataclass(frozen=True)
class ProxyPolicy:
    """Containers that may be created: of *image*, on *networks*, with *binds* (`volume:/path:mode`), so labelled."""

    name: str
    image: str
    networks: frozenset[str]
    binds: frozenset[str]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ProxyPolicy:
        """Read the variables FC_DOCKER_PROXY_NAME, _IMAGE, _NETWORKS and _BINDS; raises ConfigurationError."""
        names = ("FC_DOCKER_PROXY_NAME", "FC_DOCKER_PROXY_IMAGE", "FC_DOCKER_PROXY_NETWORKS", "FC_DOCKER_PROXY_BINDS")
        if missing := [name for name in names if not environment.get(name)]:
            raise ConfigurationError(f"{', '.join(missing)} not set", remedy="See deploy/compose/compose.yaml")
        name, image, networks, binds = (environment[name] for name in names)
        return cls(name, image, frozenset(networks.split()), frozenset(binds.split()))

    def refusal(self, body: Mapping[str, Any]) -> str:
        """Return the reason to refuse a container of *body*; empty if it is allowed."""
        host, networking = _object_of(body, "HostConfig"), _object_of(body, "NetworkingConfig")
        attached = _object_of(networking, "EndpointsConfig")
        said = [name for name, value in body.items() if _is_said(value) and name not in _MAY_SAY]
        said += [f"HostConfig.{name}" for name, value in host.items() if _is_said(value) and name not in _HOST_MAY_SAY]
        # Docker's client for Python names the network here too, without a word about it
        said += [f"NetworkingConfig.{name}" for name in _said(networking) - {"EndpointsConfig"}]
        # a `NetworkID` counts for more than the name that it is said of
        said += [f"NetworkingConfig.EndpointsConfig.{name}" for name, value in attached.items() if value]
        if said:
            return f"{', '.join(sorted(said))} is not allowed"
        if body.get("Image") != self.image:
            return f"the image is not {self.image}"
        if strange := {host.get("NetworkMode"), *attached} - self.networks:
            return f"no network of runs: {', '.join(sorted(map(str, strange)))}"
        if strange := set(host.get("Binds") or ()) - self.binds:
            return f"no volume of runs: {', '.join(sorted(strange))}"
        if strange := set(host.get("SecurityOpt") or ()) - _SECURITY:
            return f"security is not loosened: {', '.join(sorted(strange))}"
        return ""


class _Proxy:
    """Forwards the requests that a policy admits to a daemon."""

    def __init__(self, policy: ProxyPolicy, client: httpx.AsyncClient) -> None:
        self._policy = policy
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
            refusal = None if _ASKING.fullmatch(asked) else _refused(f"{asked} is not allowed through the Docker proxy")
        return refusal or await self._pass_on(request)

    async def _create(self, request: Request, said: Mapping[str, Any]) -> Response:
        if why := self._policy.refusal(said):
            return _refused(why)
        labels = {**_object_of(said, "Labels"), LABEL: self._policy.name}
        return await self._pass_on(request, {**said, "Labels": labels})

    async def _connect(self, request: Request, network: str, said: Mapping[str, Any]) -> Response:
        container = said.get("Container")
        if not isinstance(container, str) or not _CONTAINER.fullmatch(container):
            return _refused("no container is named as Container")
        if more := _said(said) - {"Container"}:
            return _refused(f"{', '.join(sorted(more))} is not allowed")
        refusal = await self._unless_of_runs(network) or await self._unless_ours(container)
        return refusal or await self._pass_on(request, {"Container": container})

    async def _unless_ours(self, container: str) -> Response | None:
        answer = await self._client.get(f"/containers/{container}/json")
        if answer.status_code != HTTPStatus.OK:
            return Response(answer.content, answer.status_code, media_type="application/json")
        labels = answer.json()["Config"]["Labels"] or {}
        return (
            None
            if labels.get(LABEL) == self._policy.name
            else _refused(f"{container} is not a run of {self._policy.name}")
        )

    async def _unless_of_runs(self, network: str) -> Response | None:
        answer = await self._client.get(f"/networks/{network}")
        if answer.status_code != HTTPStatus.OK:
            return Response(answer.content, answer.status_code, media_type="application/json")
        return (
            None if answer.json()["Name"] in self._policy.networks else _refused(f"{network} is not a network of runs")
        )

    async def _pass_on(self, request: Request, said: Mapping[str, Any] | None = None) -> Response:
        answer = await self._client.request(
            request.method,
            request.url.path,
            params=dict(request.query_params),
            json=said,
        )
        kept = {name: answer.headers[name] for name in ("content-type", "api-version") if name in answer.headers}
        return Response(answer.content, answer.status_code, kept)


def app(policy: ProxyPolicy, transport: httpx.AsyncBaseTransport | None = None) -> Starlette:
    """Serve *policy* over HTTP, in front of the daemon of `SOCKET` or of *transport*."""
    client = httpx.AsyncClient(
        transport=transport or httpx.AsyncHTTPTransport(uds=SOCKET), base_url="http://docker", timeout=TIMEOUT_SECONDS
    )
    proxy = _Proxy(policy, client)

    @asynccontextmanager
    async def closing(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    methods = ["GET", "HEAD", "POST", "PUT", "DELETE"]
    return Starlette(routes=[Route("/{path:path}", proxy.answer, methods=methods)], lifespan=closing)


def _read(body: bytes) -> dict[str, Any]:
    """Parse *body* as an object; raises ValueError if it is none, or ambiguous to the daemon."""
    said = json.loads(body, object_pairs_hook=_without_doubles)
    if not isinstance(said, dict):
        raise ValueError("the body is not a JSON object")
    return said


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name.casefold() for name, _ in pairs}) < len(pairs):
        raise ValueError(f"the same key twice, but for case: {', '.join(sorted(name for name, _ in pairs))}")
    return dict(pairs)


def _object_of(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object *name* of *said*, empty if absent; raises ValueError if it is no object."""
    value = said.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{name} is not a JSON object")
    return value or {}


def _said(said: Mapping[str, Any]) -> set[str]:
    """Return the effective keys of *said*: an empty object has no effect."""
    return {name for name, value in said.items() if _is_said(value) and value != {}}


def _is_said(value: Any) -> bool:
    """Return True if the value has an effect: an empty list does, `MaskedPaths: []` shows all of /proc."""
    return value is not None and value is not False


def _refused(why: str) -> Response:
    return JSONResponse({"message": f"refused by the Docker proxy: {why}"}, HTTPStatus.FORBIDDEN)


def main() -> None:
    """Serve on port 2375 of all addresses: for a network of only the webserver and the daemon."""
    import uvicorn

    gate = ProxyPolicy.from_environment(os.environ)
    uvicorn.run(app(gate), host="0.0.0.0", port=2375, log_level="warning", access_log=False)  # noqa: S104 - see above


if __name__ == "__main__":
    main()
