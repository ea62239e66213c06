"""What compose.yaml promises: who holds what, and who listens where."""

from __future__ import annotations

import os
import subprocess

import pytest
from dagster_docker.docker_run_launcher import DockerRunLauncher
from dotenv import dotenv_values

from formulacode_dagster.orchestration.launch_gate import Gate
from resources.documentation import SETTINGS
from sandbox.session import SERVICES, environment_of
from tests.support.deployments import COMPOSE, COMPOSE_TEXT, compose_as_it_stands, dagster_yaml

FILES = compose_as_it_stands()
SERVICE = FILES["services"]
OURS = {name for name, service in SERVICE.items() if "platform" in service["image"]}
SECRET = {setting.name for setting in SETTINGS if setting.secret}


def sources(service: str) -> dict[str, str]:
    """What *service* mounts, by volume or folder: read-only or not."""
    mounted = [volume.split(":") for volume in SERVICE[service].get("volumes", [])]
    return {source: ":".join(mode) for source, _, *mode in mounted}


def test_one_service_alone_holds_the_socket_and_it_is_on_a_network_of_its_own() -> None:
    assert [name for name in SERVICE if "/var/run/docker.sock" in sources(name)] == ["gate"]
    assert SERVICE["gate"]["networks"] == ["control"]
    assert FILES["networks"]["control"] == {"internal": True}
    assert {name for name, service in SERVICE.items() if "control" in service.get("networks", [])} == {
        *("gate", "webserver", "daemon")
    }


def test_builds_are_on_a_network_without_the_platform() -> None:
    assert {name for name, service in SERVICE.items() if "builds" in service.get("networks", [])} == {
        *("builder", "registry", "fc-data")
    }
    assert [name for name, service in SERVICE.items() if service.get("privileged")] == ["builder"]


def test_nothing_listens_beyond_localhost_unless_told() -> None:
    published = {name: service["ports"] for name, service in SERVICE.items() if "ports" in service}
    assert published == {"registry": ["127.0.0.1:5001:5000"], "webserver": ["127.0.0.1:3000:3000"]}
    assert not any(service.get("network_mode") == "host" for service in SERVICE.values())


def test_our_services_have_no_privilege_and_cannot_write_their_image() -> None:
    assert {"files", "migrations", "code", "gate", "webserver", "daemon", "sandbox", "fc-data"} == OURS
    for name in OURS:
        assert SERVICE[name]["read_only"], name
        assert SERVICE[name]["cap_drop"] == ["ALL"], name
        assert SERVICE[name]["security_opt"] == ["no-new-privileges:true"], name
    # it alone is root, and reaches nobody
    assert [name for name in OURS if SERVICE[name].get("user", "").startswith("0")] == ["files"]
    assert SERVICE["files"]["network_mode"] == "none"


def test_settings_reach_the_code_location_alone_and_no_secret_is_in_an_environment() -> None:
    assert {name for name in OURS if "settings" in sources(name)} == {"files", "migrations", "code", "fc-data"}
    assert {sources(name)["settings"] for name in ("migrations", "code", "fc-data")} == {"ro"}
    for name, service in SERVICE.items():
        assert set(service.get("environment", {})) & SECRET == set(), name
    assert not any(f"{name}:" in COMPOSE_TEXT for name in SECRET)


def test_every_service_that_stays_tells_its_health() -> None:
    stays = {name for name, service in SERVICE.items() if service["restart"] != "no"}
    # the registry's public image holds nothing to ask it with
    assert {name for name in stays if "healthcheck" not in SERVICE[name]} == {"registry"}


def test_the_gate_lets_through_what_the_launcher_asks_for() -> None:
    configured = dagster_yaml(COMPOSE)["run_launcher"]["config"]
    assert DockerRunLauncher(**configured).container_kwargs == configured["container_kwargs"]
    options = configured["container_kwargs"]
    gate = Gate.from_environment(SERVICE["gate"]["environment"])
    assert gate.networks == set(configured["networks"])
    assert gate.binds == set(options["volumes"])
    assert gate.image == SERVICE["code"]["environment"]["DAGSTER_CURRENT_IMAGE"]
    assert set(configured["env_vars"]) <= set(SERVICE["daemon"]["environment"])
    assert set(configured["env_vars"]) & SECRET == set()


def test_the_settings_of_the_demo_are_those_that_the_sandbox_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FC_STATEMENT_WRITER", "FC_STATEMENT_JUDGES", "FC_WORKLOAD_WRITER"):
        monkeypatch.delenv(name, raising=False)
    command = SERVICE["sandbox"]["command"]
    port, host = int(command[command.index("--port") + 1]), command[command.index("--host") + 1]
    urls = {service: f"http://{host}:{port + number}" for number, service in enumerate(SERVICES)}
    state = COMPOSE.__class__("/var/lib/formulacode/sandbox/repositories")
    printed = environment_of(urls, state)
    # the real registry is there
    del printed["FC_REGISTRY_URL"]
    assert dotenv_values(COMPOSE / "demo.env") == {name: value for name, value in printed.items() if value}


def test_without_an_engine_that_builds_nothing_is_started() -> None:
    refused = subprocess.run(
        [COMPOSE / "up.sh"],
        env={"PATH": os.environ["PATH"], "COMPOSE_PROFILES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "FC_DOCKER_HOST" in refused.stderr
