"""deploy/compose started as a user starts it: all of it healthy, each run in a container of its own, volumes kept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from dotenv import dotenv_values

from tests.support.composed import STAND_INS, Composed, composed
from tests.support.deployments import COMPOSE
from tests.support.docker import image_is_here
from tests.support.sampling import TAKES_MINUTES
from tests.support.sharing import RunFolder
from tests.support.waiting import until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.xdist_group("compose"),
    TAKES_MINUTES.with_args(case="compose"),
    pytest.mark.timeout(1200),
]

OF_COMPOSE = pytest.mark.variant("what becomes of services and runs that end", most=1)
MONTH = "2026-01"
UI_HOST = "ui.example"
PARTITIONS = '{ assetNodes(assetKeys: [{path: ["repositories"]}]) { partitionKeys } }'
RUNS = """
query Runs($filter: RunsFilter!) {
  runsOrError(filter: $filter) { ... on Runs { results { runId status assetMaterializations { partition } } } }
}
"""
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}


@pytest.fixture(scope="module")
def services(run_folder: RunFolder, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    missing = [image for image in STAND_INS.values() if not image_is_here(image)]
    if missing:
        pytest.skip(f"run .ci/make-os-image and .ci/make-service-images: {', '.join(missing)} are not here")
    settings = tmp_path_factory.mktemp("compose") / "settings.env"
    settings.write_text((COMPOSE / "demo.env").read_text(encoding="utf-8") + f"FC_UI_HOSTS={UI_HOST}\n")
    with composed(f"fc-test-{run_folder.uid}-{worker_id}", settings) as started:
        yield started


def runs_of(services: Composed, job: str) -> list[dict[str, object]]:
    """The newest first."""
    answer = services.ui.graphql(RUNS, filter={"pipelineName": job})
    return list(answer["runsOrError"]["results"])


def container_of(services: Composed, run: str) -> str:
    """The container of *run*, once it is there."""
    return until(lambda: services.run_containers(run), lambda: f"of run {run}")[0]


def test_all_of_it_is_healthy_and_what_runs_are_told_is_no_secret(services: Composed) -> None:
    names = ("postgres", "registry", "builder", "code", "docker-proxy", "webserver", "daemon", "sandbox")
    assert services.services() == dict.fromkeys(names, "healthy")


def test_settings_of_the_ui_and_the_first_month_reach_whom_they_are_for(services: Composed) -> None:
    (repositories,) = services.ui.graphql(PARTITIONS)["assetNodes"]
    assert repositories["partitionKeys"][0] == dotenv_values(COMPOSE / "demo.env")["FC_FIRST_MONTH"]
    answers = {
        host: httpx.get(f"{services.ui.url}/server_info", headers={"host": host}).status_code
        for host in (UI_HOST, "other.example")
    }
    assert answers == {UI_HOST: 200, "other.example": 403}


def test_a_month_is_taken_in_by_runs_in_containers_of_their_own(services: Composed) -> None:
    run = services.ui.launch_month("repositories_only", MONTH)
    told = json.loads(subprocess.run(
        ["docker", "inspect", container_of(services, run)], capture_output=True, text=True, check=True
    ).stdout)[0]  # fmt: skip
    assert told["HostConfig"]["ReadonlyRootfs"]
    assert not told["HostConfig"]["Privileged"]
    assert not any("docker.sock" in mount["Source"] for mount in told["Mounts"])
    variables = {name for name, _, _ in (variable.partition("=") for variable in told["Config"]["Env"])}
    assert {"DAGSTER_HOME", "PGPASSFILE"} <= variables
    assert not {"HF_TOKEN", "GH_TOKENS", "LLM_API_KEY", "DOCKERHUB_TOKEN", "PGPASSWORD"} & variables
    assert services.ui.wait_for_run(run) == "SUCCESS"
    (ended,) = runs_of(services, "repositories_only")
    assert ended["assetMaterializations"] == [{"partition": MONTH}]


@OF_COMPOSE
def test_a_run_whose_container_is_killed_is_launched_anew(services: Composed) -> None:
    run = services.ui.launch_month("pull_requests_only", MONTH)
    container = container_of(services, run)
    # what dies before it has begun is given up after two minutes, what has begun at the next look

    def status() -> str:
        return services.ui.status_of(run)

    assert until(lambda: {*ENDED, "STARTED"} & {status()}, status) == {"STARTED"}
    subprocess.run(["docker", "kill", container], capture_output=True, check=True)

    def runs() -> list[dict[str, object]]:
        return runs_of(services, "pull_requests_only")

    until(lambda: [each["status"] in ENDED for each in runs()] == [True, True], runs, seconds=300)
    assert [(each["runId"] == run, each["status"]) for each in runs()] == [(False, "SUCCESS"), (True, "FAILURE")]


def test_the_engine_that_builds_and_the_registry_answer_where_runs_are(services: Composed) -> None:
    said = services.fc_data("preflight")
    lines = [line.split(maxsplit=2) for line in said.splitlines()]
    health = {system: (state, text) for state, system, text in lines}
    assert {system for system, (state, _) in health.items() if state == "broken"} == set()
    assert {health[system][0] for system in ("postgres", "github", "registry")} == {"ok"}, said
    # it has no image of an interpreter yet, and none can be pulled everywhere
    assert health["containers"][1].startswith("Building with Docker"), said


@OF_COMPOSE
def test_volumes_survive_and_the_next_up_goes_on(services: Composed) -> None:
    assert services.ui.wait_for_run(services.ui.launch_month("repositories_only", MONTH)) == "SUCCESS"
    before = runs_of(services, "repositories_only")
    services.down()
    assert services.services() == {}
    services.up()
    assert runs_of(services, "repositories_only") == before
    assert services.ui.wait_for_run(services.ui.launch_month("repositories_only", MONTH)) == "SUCCESS"
