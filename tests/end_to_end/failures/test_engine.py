"""No Docker, and a build that hangs."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.installation import installation_id
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.sources.offline.side_file import SIDE_FILE, PullRequestFacts, RepositoryFacts, SideFile
from tests.support.git_world import BareRepository

TASK = "sample-org/gridpath#12"
SLEEPER = "acme/sleeper#1"
MERGED = "2026-02-10T10:00:00Z"
CLASSIFIED = (Stage.REPOSITORIES, Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS)
INTAKE = (*CLASSIFIED, Stage.ENVIRONMENTS)

FILES = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "sleeper"
version = "1.0"
requires-python = ">=3.11"

[tool.setuptools]
packages = ["sleeper"]
""",
    "asv.conf.json": '{"version": 1, "project": "sleeper", "repo": ".", "branches": ["main"]}',
    "sleeper/__init__.py": "def total(n):\n    return sum([i for i in range(n)])\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench_total.py": "import sleeper\n\n\ndef time_total():\n    sleeper.total(10_000)\n",
}
SETUP = """
import os, subprocess
from setuptools import setup

# a build sees nothing else that a test could change between two runs
if os.environ["FC_CORES"] == "1":
    subprocess.run(["setsid", "sleep", {mark!r}])
setup()
"""

pytestmark = [pytest.mark.slow, pytest.mark.variant("engine that fails a month", most=1)]


def processes_with(mark: str) -> list[str]:
    """Processes with *mark* among their arguments; those of containers are processes of this machine too."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                told = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in told:
                found.append(folder.name)
    return found


@pytest.fixture
def sleeper(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a folder to serve: one repository whose build sleeps for *mark* seconds if it may use one core."""

    def make(mark: str) -> Path:
        served = tmp_path / "served-sleeper"
        made = BareRepository(served / "acme" / "sleeper.git")
        made.add("Begin", MERGED, {**FILES, "setup.py": SETUP.format(mark=mark)})
        faster = "def total(n):\n    return n * (n - 1) // 2\n"
        made.add("Make total much faster (#1)", MERGED, {"sleeper/__init__.py": faster})
        made.write()
        merged = PullRequestFacts(number=1, title="Make total much faster", body="It was slow.", author="dora")
        side = SideFile(repositories={"acme/sleeper": RepositoryFacts(pull_requests=(merged,))})
        (served / SIDE_FILE).write_text(side.model_dump_json(exclude_defaults=True))
        return served

    return make


def test_without_docker_the_message_says_so_and_the_next_run_uses_folders(seeded) -> None:
    platform = seeded(*CLASSIFIED)
    nowhere = {"FC_ENGINE": "docker", "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    with platform.serve():
        said = platform.fc_data("run", "--month", "2026-02", "--stage", "environments", "--only", TASK, **nowhere)
        assert not said.succeeded
        said.tells("failed: environments: docker: ", "Start Docker, or set DOCKER_HOST", "FC_ENGINE=process")
        assert len(said.complaints) == 1
        assert platform.entries(Stage.ENVIRONMENTS) == {}
        assert platform.run(Stage.ENVIRONMENTS, Stage.IMAGES, only=(TASK,)).succeeded
    assert platform.entries(Stage.IMAGES)[TASK].state is ItemState.DONE


def test_a_hanging_build_is_killed_with_its_children_and_retried(seeded, sleeper) -> None:
    mark = f"7{uuid.uuid4().int % 10**6}"
    platform = seeded()
    platform.settings |= {"FC_BUILD_SECONDS": "12", "FC_CPUS": "1"}
    with platform.serve(folder=sleeper(mark)):
        assert platform.run(*INTAKE).succeeded
        said = platform.run(Stage.IMAGES)
        assert not said.succeeded
        said.tells(f"check failed: images/failures_within_budget: 1 of 1 pull requests failed, 40% may ({SLEEPER})")
        failed = platform.entries(Stage.IMAGES)[SLEEPER]
        assert (failed.state, failed.reason, failed.attempt) == (ItemState.FAILED, "timeout", 1)
        assert "was killed after 12 s" in failed.detail
        platform.wait_for(lambda: not processes_with(mark), "the end of what the build had started")
        assert not any((platform.home / "builds" / "building").iterdir())
        platform.settings |= {"FC_BUILD_SECONDS": "240", "FC_CPUS": "2"}
        assert platform.run(Stage.IMAGES).succeeded
    built = platform.entries(Stage.IMAGES)[SLEEPER]
    assert (built.state, built.attempt) == (ItemState.DONE, 2)


@pytest.mark.docker
def test_a_build_that_hangs_in_docker_leaves_neither_container_nor_process(seeded, sleeper) -> None:
    mark = f"7{uuid.uuid4().int % 10**6}"
    platform = seeded()
    platform.settings |= {
        "FC_ENGINE": "docker",
        "FC_OS_IMAGE": os.environ.get("FC_OS_IMAGE", "fc-os:py{python}"),
        "FC_BUILD_SECONDS": "15",
        "FC_CPUS": "1",
    }
    with platform.serve(folder=sleeper(mark)):
        assert platform.run(*INTAKE).succeeded
        said = platform.run(Stage.IMAGES)
        assert not said.succeeded
        said.tells(f"check failed: images/failures_within_budget: 1 of 1 pull requests failed, 40% may ({SLEEPER})")
    failed = platform.entries(Stage.IMAGES)[SLEEPER]
    assert (failed.state, failed.reason) == (ItemState.FAILED, "timeout"), failed.detail
    platform.wait_for(lambda: not processes_with(mark), "the end of the build step")
    assert docker("ps", "--all", "--quiet", "--filter", f"label=formulacode.run={failed.run_id}") == []
    repository = SLEEPER.partition("#")[0]
    mine = (f"installation={installation_id(platform.home)}", f"repository={repository}")
    of_task = ("images", "--quiet", *(f"--filter=label=formulacode.{label}" for label in mine))
    assert docker(*of_task, "--filter", "label=formulacode.task") == [], "no half image"
    for image in docker(*of_task):
        docker("rmi", "--force", image)


def docker(*arguments: str) -> list[str]:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.split()
