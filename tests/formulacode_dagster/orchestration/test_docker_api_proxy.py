"""The proxy for Docker's API: it admits Dagster's own launcher, and no access to the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
import httpx
import pytest
from docker.errors import APIError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.orchestration.docker_api_proxy import LABEL, ProxyPolicy, app
from sandbox.server import serving

STATE = "fc_state:/var/lib/formulacode:rw"
GATE = ProxyPolicy("fc", "platform:1", frozenset({"fc_platform", "fc_builds"}), frozenset({STATE}))
RUN: dict[str, Any] = {
    "image": "platform:1",
    "command": ["dagster", "api", "execute_run"],
    "detach": True,
    "environment": {"PGPASSFILE": "/etc/formulacode/database/pgpass"},
    "network": "fc_platform",
    "labels": {"dagster/run_id": "1"},
    "auto_remove": True,
    "init": True,
    "read_only": True,
    "tmpfs": {"/tmp": ""},
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
    "working_dir": "/etc/formulacode/settings",
    "volumes": [STATE],
}
"""Requests of DockerRunLauncher, with the options of deploy/compose/dagster.yaml."""


class Engine:
    """As much of Docker's API as launching takes; remembers what was asked of it."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.bodies: list[bytes] = []

    async def answer(self, request: Request) -> Response:
        path = request.url.path.removeprefix("/v1.45")
        self.asked.append(f"{request.method} {path}")
        if path == "/version":
            return JSONResponse({"ApiVersion": "1.45"})
        if path == "/containers/create":
            self.created.append(await request.json())
            return JSONResponse({"Id": "ours", "Warnings": []}, 201)
        if path == "/containers/ours/json":
            return JSONResponse({"Id": "ours", "State": {"Status": "running"}, "Config": {"Labels": {LABEL: "fc"}}})
        if path == "/containers/theirs/json":
            return JSONResponse({"Id": "theirs", "State": {"Status": "running"}, "Config": {"Labels": {}}})
        if request.method == "POST":
            self.bodies.append(await request.body())
        if path.startswith("/networks/") and request.method == "GET":
            name = path.removeprefix("/networks/")
            return JSONResponse({"Id": name, "Name": name})
        return (
            JSONResponse({"message": "no such container"}, 404)
            if path == "/containers/gone/json"
            else Response(status_code=204)
        )


@contextmanager
def docker_behind(gate: ProxyPolicy) -> Iterator[tuple[docker.DockerClient, Engine]]:
    """The real client of Docker, as the launcher uses it, at a gate before an engine."""
    engine = Engine()
    methods = ["GET", "HEAD", "POST", "PUT", "DELETE"]
    behind = httpx.ASGITransport(Starlette(routes=[Route("/{path:path}", engine.answer, methods=methods)]))
    with serving(app(gate, behind)) as url:
        client = docker.DockerClient(base_url=url.replace("http", "tcp"))
        try:
            yield client, engine
        finally:
            client.close()


def test_a_run_is_launched_watched_and_ended_under_its_proxys_label() -> None:
    with docker_behind(GATE) as (client, engine):
        container = client.containers.create(**RUN)
        client.networks.get("fc_builds").connect(container)
        container.start()
        assert client.containers.get("ours").status == "running"
        container.stop(timeout=60)
    assert engine.created[0]["Labels"] == {"dagster/run_id": "1", LABEL: "fc"}
    assert "POST /containers/ours/start" in engine.asked
    assert "POST /networks/fc_builds/connect" in engine.asked


@pytest.mark.parametrize(
    "more",
    [
        {"image": "debian"},
        {"privileged": True},
        {"cap_add": ["SYS_ADMIN"]},
        {"network": "host"},
        {"network": "fc_control"},
        {"pid_mode": "host"},
        {"devices": ["/dev/sda"]},
        {"user": "0"},
        {"volumes": ["/:/host:rw"]},
        {"volumes": ["/var/run/docker.sock:/var/run/docker.sock"]},
        {"mounts": [docker.types.Mount("/host", "/", type="bind")]},
        {"volumes_from": ["postgres"]},
        {"ports": {"22/tcp": 22}},
        {"security_opt": ["seccomp=unconfined"]},
        {"runtime": "other"},
        {"userns_mode": "host"},
        {"cgroup_parent": "/"},
        {"sysctls": {"net.ipv4.ip_forward": "1"}},
    ],
    ids=lambda more: next(iter(more)),
)
def test_no_other_container_is_created(more: dict[str, Any]) -> None:
    with docker_behind(GATE) as (client, engine), pytest.raises(APIError, match="refused by the Docker proxy"):
        client.containers.create(**{**RUN, **more})
    assert engine.created == []


def created_by(body: str) -> tuple[httpx.Response, Engine]:
    """The proxy's response to the *body* of a request that creates a container, and the engine behind it."""
    with docker_behind(GATE) as (client, engine):
        answer = httpx.post(f"{client.api.base_url}/v1.45/containers/create", content=body)
    return answer, engine


@pytest.mark.parametrize(
    "more",
    [
        '"image": "debian"',
        '"Image": "debian"',
        '"hostconfig": {"NetworkMode": "fc_platform", "Privileged": true}',
        '"HOSTCONFIG": {}',
        '"User": "0"',
        '"networkingConfig": {"EndpointsConfig": {"fc_control": {}}}',
        '"NetworkingConfig": {"endpointsconfig": {"fc_control": {}}}',
        '"NetworkingConfig": {"EndpointsConfig": {"fc_builds": {}}, "EndpointsConfig": {}}',
        '"NetworkingConfig": {"EndpointsConfig": {"fc_builds": {"NetworkID": "of fc_control"}}}',
        '"NetworkingConfig": []',
        '"Labels": {"a": {"b": 1, "\u212a": 1, "k": 1}}',
        '"Labels": ["a"]',
    ],
)
def test_what_the_daemon_would_read_otherwise_is_refused(more: str) -> None:
    answer, engine = created_by(f'{{"Image": "platform:1", "HostConfig": {{"NetworkMode": "fc_platform"}}, {more}}}')
    assert (answer.status_code, engine.created) == (403, [])


@pytest.mark.parametrize(
    "more",
    [
        '"privileged": true',
        '"binds": ["/:/host"]',
        '"Binds": ["/:/host"], "Binds": []',
        '"Binds": [], "binds": ["/:/host"]',
        '"networkmode": "host"',
        '"MaskedPaths": []',
        '"ReadonlyPaths": []',
    ],
)
def test_options_of_its_machine_are_no_more_to_be_had_by_another_spelling(more: str) -> None:
    answer, engine = created_by(f'{{"Image": "platform:1", "HostConfig": {{"NetworkMode": "fc_platform", {more}}}}}')
    assert (answer.status_code, engine.created) == (403, [])


@pytest.mark.parametrize("body", ["", "[]", "{", '{"Image": "platform:1", "HostConfig": "host"}'])
def test_what_is_no_request_is_refused(body: str) -> None:
    answer, engine = created_by(body)
    assert (answer.status_code, engine.created) == (403, [])


@pytest.mark.parametrize(
    "body",
    [
        '{"Container": "ours", "container": "theirs"}',
        '{"Container": "ours", "Container": "theirs"}',
        '{"container": "theirs"}',
        '{"Container": "theirs"}',
        '{"Container": "ours/json?"}',
        '{"Container": "ours", "EndpointConfig": {"NetworkID": "of fc_control"}}',
        '{"Container": "ours", "endpointconfig": {"NetworkID": "of fc_control"}}',
    ],
)
def test_only_runs_are_connected_and_only_to_named_networks(body: str) -> None:
    with docker_behind(GATE) as (client, engine):
        answer = httpx.post(f"{client.api.base_url}/v1.45/networks/fc_builds/connect", content=body)
    assert answer.status_code == 403
    assert [asked for asked in engine.asked if not asked.startswith("GET ")] == []


def test_what_is_passed_on_is_what_was_read() -> None:
    with docker_behind(GATE) as (client, engine):
        httpx.post(
            f"{client.api.base_url}/v1.45/networks/fc_builds/connect", content='{"Container": "ours", "x": null}'
        )
        httpx.post(f"{client.api.base_url}/v1.45/containers/ours/start", content='{"Privileged": true}')
    assert engine.bodies == [b'{"Container":"ours"}', b""]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1.45/containers/json"),
        ("GET", "/v1.45/containers/theirs/json"),
        ("POST", "/v1.45/containers/theirs/stop"),
        ("DELETE", "/v1.45/containers/theirs"),
        ("POST", "/v1.45/containers/prune"),
        ("POST", "/v1.45/containers/ours/exec"),
        ("GET", "/v1.45/containers/ours/archive"),
        ("POST", "/v1.45/build"),
        ("POST", "/v1.45/images/create"),
        ("GET", "/v1.45/networks/host"),
        ("POST", "/v1.45/networks/create"),
        ("POST", "/v1.45/containers/../containers/theirs/stop"),
        ("POST", "/v1.45//containers/create"),
    ],
)
def test_nothing_else_is_passed_on(method: str, path: str) -> None:
    with docker_behind(GATE) as (client, engine):
        answer = httpx.request(method, f"{client.api.base_url}{path}")
    assert answer.status_code == 403
    assert [asked for asked in engine.asked if not asked.startswith("GET ")] == []


def test_a_container_that_is_gone_is_said_to_be_gone() -> None:
    with docker_behind(GATE) as (client, _), pytest.raises(docker.errors.NotFound):
        client.containers.get("gone")


def test_what_is_not_set_is_named() -> None:
    with pytest.raises(ConfigurationError, match="FC_DOCKER_PROXY_IMAGE, FC_DOCKER_PROXY_BINDS"):
        ProxyPolicy.from_environment({"FC_DOCKER_PROXY_NAME": "fc", "FC_DOCKER_PROXY_NETWORKS": "a b"})
