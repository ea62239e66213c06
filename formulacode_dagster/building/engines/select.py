"""Selects the engine, and gives the reason."""

from __future__ import annotations

import getpass
import os
from collections.abc import Collection
from pathlib import Path

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.processes import can_confine
from formulacode_dagster.building.specs.spec import DEFAULT_OS_IMAGE
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import EngineName

from .protocol import Engine

_FOLDERS = "Building the samples in folders of this machine"


def choose_engine(
    setting: str, *, root: Path, os_image: str = DEFAULT_OS_IMAGE, builds: DockerBuildSettings | None = None
) -> tuple[Engine, str]:
    """The engine that *setting* (`docker`, `process` or `auto`) asks for, and a sentence that says which and why.

    The choice of `auto` must be compared with the month's engine, see `require_same_engine`.

    *root* is the folder of the process engine; it takes limits and certificates from *builds*. Raises
    OutsideSystemError when Docker is requested and does not answer.
    """
    builds = builds or DockerBuildSettings()
    online = dict(os.environ)
    if builds.ca_bundle is not None:
        online["SSL_CERT_FILE"] = str(builds.ca_bundle)
    process = ProcessEngine(root, builds.limits, environment=online)
    if setting == "process":
        return process, "Building in folders of this machine, as FC_ENGINE=process says; nothing can be published"
    docker = DockerEngine(os_image, builds)
    if setting == "docker":
        docker.daemon.check()
        return docker, "Building with Docker, as FC_ENGINE=docker says"
    try:
        docker.daemon.check()
    except OutsideSystemError as error:
        return process, f"{_FOLDERS}, since {error}; nothing can be published"
    if docker.interpreters() == frozenset():
        missing = os_image.replace("{python}", "3.x")
        return (
            process,
            f"Building the samples in folders of this machine, since Docker can neither pull nor find {missing}",
        )
    return docker, "Building with Docker, since a daemon answers"


def require_same_engine(
    setting: str, chosen: tuple[Engine, str], *, strangers: Collection[str], built_with: Collection[EngineName]
) -> None:
    """Raise OutsideSystemError if folders of this machine were *chosen* for code that must not run in them.

    That is any code of *strangers*, repositories that are no samples, if this machine cannot confine it. `auto` never
    takes folders for strangers, nor for a month that has images *built_with* Docker already.
    """
    engine, why = chosen
    if engine.name is not EngineName.PROCESS:
        return
    others = f" and {len(strangers) - 1} more" if len(strangers) > 1 else ""
    if strangers and not can_confine():
        raise OutsideSystemError(
            "this machine",
            f"{min(strangers)}{others} cannot be built in folders of this machine, which builds only the samples",
            why="its kernel allows no mount and user namespaces, so that code could read and write the files of"
            f" {getpass.getuser()}",
            remedy="Allow them (user.max_user_namespaces, kernel.unprivileged_userns_clone), or build with Docker",
        )
    if setting != "auto":
        return
    if EngineName.DOCKER in built_with:
        what = "the month was built with Docker, and is not built otherwise"
    elif strangers:
        what = f"{min(strangers)}{others} would be built in folders of this machine, and not in containers"
    else:
        return
    raise OutsideSystemError(
        "docker",
        what,
        why=why,
        remedy="Start Docker or set DOCKER_HOST; or take folders by name, with FC_ENGINE=process",
    )
