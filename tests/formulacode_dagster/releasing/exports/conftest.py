from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.releasing.exports.containers import TaskContainer, task_container, task_image
from formulacode_dagster.releasing.exports.evaluate import evaluate
from formulacode_dagster.releasing.exports.formats import HarnessFormat, solution
from formulacode_dagster.releasing.exports.write import export_task
from tests.support.docker import MakeDockerEngine, remove_images
from tests.support.exports import ATTACKS, PYTHON, REGISTRY, ROOT, make_rows, read_rows
from tests.support.measurement import lay
from tests.support.sharing import RunFolder

__all__ = ["lay"]


@pytest.fixture(scope="session")
def rows(make_docker_engine: MakeDockerEngine, run_folder: RunFolder, lock: str) -> Iterator[dict[str, dict[str, Any]]]:
    """Rows of a task of Python and one of C, by kind, of one image in the local registry, one for the whole run."""
    try:
        httpx.get(f"http://{REGISTRY}/v2/", timeout=5).raise_for_status()
    except httpx.HTTPError:
        pytest.skip(f"no registry on {REGISTRY}; run .ci/install-registry")
    # not this process's own, with which its images would go
    installation = f"test-{run_folder.uid}-exports"

    def make(folder: Path) -> None:
        make_rows(make_docker_engine(installation=installation), folder, lock)

    with run_folder.shared("export-rows", make, partial(remove_images, installation)) as folder:
        yield read_rows(folder)


@pytest.fixture(scope="session")
def exported(
    rows: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, HarnessFormat], Path]:
    """`exported(kind, format)`: the folder of that task, below one that holds all of the format.

    There are two kinds in addition to those of `rows`, whose solutions are attacks: one of an agent that is root.
    """
    folder = tmp_path_factory.mktemp("exported")

    def of(kind: str, format_: HarnessFormat) -> Path:
        task_id = f"acme__{kind}-5"
        place = folder / format_ / task_id
        if not place.exists():
            row = rows[PYTHON if kind in ATTACKS else kind]
            export_task({**row, "task_id": task_id}, format_, place)
            if kind in ATTACKS:
                solution(place).write_text(f"#!/usr/bin/env bash\nset -eu\ncd /workspace/repo\n{ATTACKS[kind]}")
            if kind == ROOT:
                settings = place / "task.toml"
                settings.write_text(settings.read_text().replace('user = "formulacode"', 'user = "root"'))
        return place

    return of


@pytest.fixture
def attack(exported: Callable[[str, HarnessFormat], Path], tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """`attack(script)`: the report on an agent that runs *script*, bash, in the checkout of the task of Python."""

    def run(script: str) -> dict[str, Any]:
        agent = tmp_path / "attack.sh"
        agent.write_text(f"set -eu\n{script}\n")
        return evaluate(exported("python", HarnessFormat.HARBOR), str(agent))

    return run


@pytest.fixture
def agent_container(exported: Callable[[str, HarnessFormat], Path]) -> Iterator[TaskContainer]:
    """A container of the task of Python, as a harness in a terminal has it, in which nobody has worked yet."""
    folder, daemon = exported("python", HarnessFormat.FC_EVAL), DockerDaemon()
    limits = json.loads((folder / "tests" / "task.json").read_text())["limits"]
    with task_image(folder, daemon) as image, task_container(image, limits, daemon) as container:
        yield container
