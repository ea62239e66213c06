"""The web server with `--read-only`, as configured deployments start it: it shows, and launches nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from formulacode_dagster.orchestration.ui.webserver import SERVER
from tests.support.demo import Ui
from tests.support.deployments import COMPOSE_TEXT, DEPLOY
from tests.support.webservers import LOADED, webserver_of

pytestmark = pytest.mark.slow

LAUNCH = "mutation Launch($given: ExecutionParams!) { launchRun(executionParams: $given) { __typename } }"
MAY = "{ permissions { permission value } }"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Ui]:
    with webserver_of([*SERVER, "--read-only"], tmp_path) as ui:
        yield ui


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
    assert "orchestration.ui.webserver ${FC_WEBSERVER_OPTIONS:-}" in COMPOSE_TEXT
    unit = (DEPLOY / "systemd" / "formulacode-webserver.service").read_text(encoding="utf-8")
    assert "orchestration.ui.webserver $FC_WEBSERVER_OPTIONS" in unit
    assert "value: --read-only" in (DEPLOY / "kubernetes" / "read-only" / "kustomization.yaml").read_text(
        encoding="utf-8"
    )
