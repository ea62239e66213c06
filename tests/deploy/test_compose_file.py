"""Guarantees of compose.yaml: who holds which secret, and who listens where."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from dagster._core.launcher import RunLauncher
from dagster._serdes import ConfigurableClassData
from dotenv import dotenv_values

from formulacode_dagster.orchestration.docker_api_proxy import ProxyPolicy
from formulacode_dagster.orchestration.docker_launcher import ContainerRunLauncher
from resources.documentation import SETTINGS
from sandbox.session import SERVICES, environment_of
from tests.support.deployments import COMPOSE, COMPOSE_TEXT, compose_as_it_stands, dagster_yaml, most_connections
from tests.support.documents import ROOT
from tests.support.registries import locked_registry

FILES = compose_as_it_stands()
SERVICE = FILES["services"]
OURS = {name for name, service in SERVICE.items() if "platform" in service["image"]}
SECRET = {setting.name for setting in SETTINGS if setting.secret}


def sources(service: str) -> dict[str, str]:
    """Mounts of *service*, by volume or folder: read-only or not."""
    mounted = [volume.split(":") for volume in SERVICE[service].get("volumes", [])]
    return {source: ":".join(mode) for source, _, *mode in mounted}


def test_only_one_service_holds_the_socket_on_a_separate_network() -> None:
    assert [name for name in SERVICE if "/var/run/docker.sock" in sources(name)] == ["docker-proxy"]
    assert SERVICE["docker-proxy"]["networks"] == ["control"]
    assert FILES["networks"]["control"] == {"internal": True}
    assert {name for name, service in SERVICE.items() if "control" in service.get("networks", [])} == {
        *("docker-proxy", "webserver", "daemon")
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
    assert {"files", "migrations", "code", "docker-proxy", "webserver", "daemon", "sandbox", "fc-data"} == OURS
    for name in OURS:
        assert SERVICE[name]["read_only"], name
        assert SERVICE[name]["cap_drop"] == ["ALL"], name
        assert SERVICE[name]["security_opt"] == ["no-new-privileges:true"], name
    # only this one is root, and reaches no other
    assert [name for name in OURS if SERVICE[name].get("user", "").startswith("0")] == ["files"]
    assert SERVICE["files"]["network_mode"] == "none"


def test_settings_reach_only_the_code_location_and_no_secret_leaks() -> None:
    assert {name for name in OURS if "settings" in sources(name)} == {"files", "migrations", "code", "fc-data"}
    assert {sources(name)["settings"] for name in ("migrations", "code", "fc-data")} == {"ro"}
    for name, service in SERVICE.items():
        assert set(service.get("environment", {})) & SECRET == set(), name
    assert not any(f"{name}:" in COMPOSE_TEXT for name in SECRET)


def test_the_webserver_reads_only_the_settings_of_the_ui() -> None:
    assert sources("webserver")["ui"] == "ro"
    assert SERVICE["webserver"]["working_dir"] == "/etc/formulacode/ui"
    given = {name for name in SERVICE["files"]["environment"] if name.startswith("FC_UI_")}
    assert given == {setting.name for setting in SETTINGS if setting.name.startswith("FC_UI_")}


def test_every_service_that_stays_tells_its_health() -> None:
    stays = {name for name, service in SERVICE.items() if service["restart"] != "no"}
    assert {name for name in stays if "healthcheck" not in SERVICE[name]} == set()


@pytest.mark.slow
def test_the_registry_is_asked_for_what_needs_no_password(tmp_path: Path) -> None:
    program, *_, address = SERVICE["registry"]["healthcheck"]["test"][1:]
    # its public image is one of Alpine, whose busybox has it
    assert program == "wget"
    assert re.search(r"install .*\n.* wget ", (ROOT / ".ci" / "make-service-images").read_text(encoding="utf-8"))
    with locked_registry(tmp_path) as where:
        trusted = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        asked = {path: httpx.head(f"{where}{path}", verify=trusted) for path in (urlsplit(address).path, "/v2/")}
    assert {path: answer.status_code for path, answer in asked.items()} == {"/": 200, "/v2/": 401}


def test_the_docker_proxy_admits_the_launcher() -> None:
    named = dagster_yaml(COMPOSE)["run_launcher"]
    configured = named["config"]
    made = ConfigurableClassData(named["module"], named["class"], yaml.safe_dump(configured)).rehydrate(RunLauncher)
    assert isinstance(made, ContainerRunLauncher)
    assert made.container_kwargs == configured["container_kwargs"]
    options = configured["container_kwargs"]
    policy = ProxyPolicy.from_environment(SERVICE["docker-proxy"]["environment"])
    assert policy.networks == set(configured["networks"])
    assert policy.binds == set(options["volumes"])
    assert policy.image == SERVICE["code"]["environment"]["DAGSTER_CURRENT_IMAGE"]
    assert set(configured["env_vars"]) <= set(SERVICE["daemon"]["environment"])
    assert set(configured["env_vars"]) & SECRET == set()


def test_the_settings_of_the_demo_are_those_that_the_sandbox_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FC_STATEMENT_WRITER", "FC_STATEMENT_JUDGES", "FC_WORKLOAD_WRITER"):
        monkeypatch.delenv(name, raising=False)
    command = SERVICE["sandbox"]["command"]
    port, host = int(command[command.index("--port") + 1]), command[command.index("--host") + 1]
    urls = {service: f"http://{host}:{port + number}" for number, service in enumerate(SERVICES)}
    state = COMPOSE.__class__("/var/lib/formulacode/sandbox/repositories")
    printed = environment_of(urls, state, samples=True)
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


def test_the_engine_that_builds_is_given_options_alone() -> None:
    # the entrypoint of the public image makes certificates and listens unless it is given a program
    assert SERVICE["builder"]["command"][0].startswith("--")


def test_postgres_has_a_connection_for_all_that_runs_may_take() -> None:
    (said,) = (option for option in SERVICE["postgres"]["command"] if option.startswith("max_connections="))
    runs = dagster_yaml(COMPOSE)["concurrency"]["runs"]["max_concurrent_runs"]
    assert int(said.partition("=")[2]) >= most_connections(runs, by_hand=1)


def told_by_up(folder: Path, **environment: str) -> dict[str, object]:
    """Arguments of up.sh in *folder* to Docker: those of its build, and the digest of the settings."""
    subprocess.run(
        [folder / "deploy" / "compose" / "up.sh"],
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "TOLD": str(folder / "told"), **environment},
        capture_output=True,
        check=True,
    )
    build, start = (json.loads(line) for line in (folder / "told").read_text().splitlines()[-2:])
    assert start["arguments"][:2] == ["compose", "up"]
    return {"build": build["arguments"], "digest": start["digest"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout whose Docker only records its arguments."""
    shutil.copytree(COMPOSE, tmp_path / "deploy" / "compose", ignore=shutil.ignore_patterns("secrets"))
    (tmp_path / ".env.example").write_text("FC_HELPER_RUNS=0\n")
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "told = {'arguments': sys.argv[1:], 'digest': os.environ['FC_SETTINGS_DIGEST']}\n"
        "open(os.environ['TOLD'], 'a').write(json.dumps(told) + chr(10))\n"
    )
    docker.chmod(0o755)
    return tmp_path


@pytest.mark.slow
def test_the_code_location_is_made_anew_where_settings_changed(folder: Path) -> None:
    assert SERVICE["code"]["labels"] == {"formulacode.settings": ""}
    assert '"${FC_SETTINGS_DIGEST:-}"' in COMPOSE_TEXT
    first = told_by_up(folder)["digest"]
    assert told_by_up(folder)["digest"] == first
    secrets = folder / "deploy" / "compose" / "secrets"
    (secrets / "settings.env").write_text("FC_HELPER_RUNS=3\n")
    second = told_by_up(folder)["digest"]
    elsewhere = told_by_up(folder, FC_DOCKER_HOST="tcp://builder.example:2376")["digest"]
    (secrets / "registry_password").write_text("another")
    assert len({first, second, elsewhere, told_by_up(folder)["digest"]}) == 4


def test_the_digest_of_settings_tells_nobody_a_guess_was_right(folder: Path) -> None:
    digest = told_by_up(folder)["digest"]
    (folder / "deploy" / "compose" / "secrets" / "registry_password").unlink()
    assert told_by_up(folder)["digest"] != digest, "a password by chance is hashed with them"


def test_extras_are_chosen_by_a_variable(folder: Path) -> None:
    assert "--build-arg" not in str(told_by_up(folder)["build"])
    build = told_by_up(folder, EXTRAS="s3 telemetry")["build"]
    assert isinstance(build, list)
    assert build[build.index("--build-arg") + 1] == "EXTRAS=s3 telemetry"
    assert 'ARG EXTRAS=""' in (COMPOSE.parents[1] / "dockerfiles" / "platform.Dockerfile").read_text()
