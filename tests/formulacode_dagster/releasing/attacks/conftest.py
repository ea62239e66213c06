from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.support.docker import MakeDockerEngine, remove_images
from tests.support.exports import REGISTRY
from tests.support.grading_packages import Package
from tests.support.grading_tasks import export_package, make_package
from tests.support.sharing import RunFolder


@pytest.fixture(scope="session")
def tasks(make_docker_engine: MakeDockerEngine, run_folder: RunFolder) -> Iterator[Callable[[Package], Path]]:
    """`tasks(package)`: the folder of its exported tasks, of one image in the local registry for the whole run."""
    try:
        httpx.get(f"http://{REGISTRY}/v2/", timeout=5).raise_for_status()
    except httpx.HTTPError:
        pytest.skip(f"no registry on {REGISTRY}; run .ci/install-registry")
    made: dict[Package, Path] = {}
    with ExitStack() as stack:

        def of(package: Package) -> Path:
            if package not in made:
                # not this process's own, with which its images would go
                installation = f"test-{run_folder.uid}-grading-{package}"

                def make(folder: Path) -> None:
                    make_package(make_docker_engine(installation=installation), package, folder / "rows")
                    export_package(folder / "rows", package, folder / "tasks")

                shared = run_folder.shared(f"grading-{package}", make, partial(remove_images, installation))
                made[package] = stack.enter_context(shared) / "tasks"
            return made[package]

        yield of
