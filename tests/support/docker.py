"""Docker engines with images of their own, which leave none behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.building.engines.docker.daemon import INSTALLATION_LABEL, LABEL, DockerDaemon
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.models.image import ResourceLimits
from tests.support.images import LIMITS
from tests.support.sharing import RunFolder

OS_IMAGE = os.environ.get("FC_OS_IMAGE", "fc-os:py{python}")

MakeDockerEngine = Callable[..., DockerEngine]


def ca_bundle() -> Path | None:
    """The certificates that builds need on this machine to reach the package index."""
    given = os.environ.get("SSL_CERT_FILE")
    return Path(given) if given else None


def image_is_here(name: str) -> bool:
    """Return True if this machine's daemon has the image *name*."""
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False).returncode == 0


def remove_images(installation: str) -> None:
    """Remove what *installation* built of repositories.

    The tiers below stay: they hold nothing of a test, and other tests may be building on them.
    """
    client = DockerDaemon().client
    labels = [f"{INSTALLATION_LABEL}={installation}", f"{LABEL}.repository"]
    for image in client.images.list(filters={"label": labels}):
        client.images.remove(str(image.id), force=True)


@pytest.fixture(scope="session")
def docker_installation(run_folder: RunFolder, worker_id: str) -> Iterator[str]:
    """The installation that the images of this process's tests belong to."""
    name = f"test-{run_folder.uid}-{worker_id}"
    yield name
    remove_images(name)


@pytest.fixture(scope="session")
def make_docker_engine(docker_installation: str) -> MakeDockerEngine:
    """`make_docker_engine(limits, option=value)`: an engine on this machine's daemon."""

    def make(limits: ResourceLimits = LIMITS, **options: Any) -> DockerEngine:
        return DockerEngine(
            OS_IMAGE,
            DockerBuildSettings(limits, ca_bundle=ca_bundle(), **{"installation": docker_installation, **options}),
        )

    return make
