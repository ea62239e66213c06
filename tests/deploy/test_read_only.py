"""`dagster-webserver --read-only`, as configured deployments start it: it shows, and launches nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import httpx
import pytest

from tests.support.demo import Ui, free_port
from tests.support.deployments import COMPOSE_TEXT, DEPLOY

pytestmark = pytest.mark.slow

LOCATION = "import dagster as dg\n\n\n@dg.op\ndef work(): ...\n\n\n@dg.job\ndef some_job():\n    work()\n"
LAUNCH = "mutation Launch($given: ExecutionParams!) { launchRun(executionParams: $given) { __typename } }"
LOADED = "{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus } } } }"
MAY = "{ permissions { permission value } }"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Ui]:
    """A web server of Dagster that shows only, over a home and a code location of its own."""
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (tmp_path / "location.py").write_text(LOCATION)
    port, log = free_port(), tmp_path / "webserver.log"
    program = Path(sys.executable).with_name("dagster-webserver")
    command = [str(program), "--read-only", "-h", "127.0.0.1", "-p", str(port), "-f", str(tmp_path / "location.py")]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            env={**os.environ, "DAGSTER_HOME": str(tmp_path)},
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    ui = Ui(f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + 120
        while not is_loaded(ui):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield ui
    finally:
        server.terminate()
        server.wait(60)


def is_loaded(ui: Ui) -> bool:
    try:
        entries = ui.graphql(LOADED)["workspaceOrError"]["locationEntries"]
    except httpx.TransportError:
        return False
    return [entry["loadStatus"] for entry in entries] == ["LOADED"]


def test_a_ui_that_is_read_only_refuses_a_launch(read_only: Ui, tmp_path: Path) -> None:
    (location,) = read_only.graphql(LOADED)["workspaceOrError"]["locationEntries"]
    names = {"repositoryName": "__repository__", "repositoryLocationName": location["name"], "pipelineName": "some_job"}
    asked = {"selector": names, "runConfigData": "{}", "mode": "default"}
    assert read_only.graphql(LAUNCH, given=asked) == {"launchRun": {"__typename": "UnauthorizedError"}}
    may = {each["permission"] for each in read_only.graphql(MAY)["permissions"] if each["value"]}
    assert may == set(), "nor anything else that changes what is there"
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_runs() == []


def test_every_deployment_can_start_it_so() -> None:
    assert "dagster-webserver ${FC_WEBSERVER_OPTIONS:-}" in COMPOSE_TEXT
    unit = (DEPLOY / "systemd" / "formulacode-webserver.service").read_text(encoding="utf-8")
    assert "dagster-webserver $FC_WEBSERVER_OPTIONS" in unit
    assert "value: --read-only" in (DEPLOY / "kubernetes" / "read-only" / "kustomization.yaml").read_text(
        encoding="utf-8"
    )
