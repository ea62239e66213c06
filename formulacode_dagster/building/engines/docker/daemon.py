"""The one way to the Docker daemon: its SDK for containers, its command line for builds and commands in containers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from formulacode_dagster.building.engines.processes import Bounds, run_bounded
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import OutsideSystemError

if TYPE_CHECKING:
    import docker
    from docker.models.images import Image

API_SECONDS = 120
LABEL = "formulacode"
"""Label of every image and container of this platform, from any installation."""
INSTALLATION_LABEL = f"{LABEL}.installation"
"""Label of every image: the installation that built it."""
_CONTAINERD = "io.containerd.snapshotter"
_REMEDY = "Start Docker, or set DOCKER_HOST, or take the process engine with FC_ENGINE=process"


class DockerDaemon:
    """A daemon, found by `DOCKER_HOST` or the current Docker context."""

    @cached_property
    def client(self) -> docker.DockerClient:
        """The SDK's client; raises OutsideSystemError when the daemon does not answer."""
        import docker

        with self.watched("connect"):
            client = docker.from_env(timeout=API_SECONDS, environment=self.environment)
            client.ping()
            return client

    @cached_property
    def environment(self) -> dict[str, str]:
        """Variables for the command line: the host's, since it may need its credential helpers and proxies."""
        environment = dict(os.environ)
        if "DOCKER_HOST" not in environment:
            inspect = ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
            done = run_bounded(inspect, timeout=30, bounds=Bounds(), environment=environment, cwd=Path("/"))
            if done.ok and (host := done.stdout.decode(errors="replace").strip()):
                environment["DOCKER_HOST"] = host
        # The builder of the daemon itself: others cannot see its images, nor it theirs.
        environment["BUILDX_BUILDER"] = "default"
        environment["DOCKER_CLI_HINTS"] = "false"
        return environment

    def check(self) -> None:
        """Raise OutsideSystemError unless the daemon answers, can build, and identifies images by their configuration.

        The image store of containerd, the default of new installations since Docker 29, identifies them by their
        manifest: https://docs.docker.com/engine/storage/containerd/.
        """
        with self.watched("ping"):
            status = self.client.info().get("DriverStatus") or ()
        if any(_CONTAINERD in str(value) for _, value in status):
            raise OutsideSystemError(
                "docker",
                "it keeps images in the store of containerd, which is not supported",
                why="an image has another id there than in its registry",
                remedy='Set {"features": {"containerd-snapshotter": false}} in Docker\'s daemon.json, and restart it',
            )
        self.require_buildx()

    def require_buildx(self) -> None:
        """Raise OutsideSystemError when `docker buildx`, or all of the client, is not installed."""
        done = self.run(["buildx", "version"], timeout=30)
        if not done.ok:
            raise OutsideSystemError(
                "docker",
                "`docker buildx` does not work",
                why=_text(done),
                remedy="Install Docker's client and its buildx",
            )

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        stdin: bytes | None = None,
        progress: ProgressReporter | None = None,
        most_output: int | None = None,
    ) -> Completed:
        """Run `docker` with *arguments*; it always ends with the caller. See `run_bounded` for the rest."""
        return run_bounded(
            ["docker", *arguments],
            timeout=timeout,
            bounds=Bounds(),
            environment=self.environment,
            cwd=Path("/"),
            stdin=stdin,
            progress=progress,
            most_output=most_output,
        )

    @contextmanager
    def watched(self, what: str) -> Iterator[None]:
        """Turn a daemon that does not answer, or is out of disk, into OutsideSystemError."""
        import docker.errors
        import requests.exceptions

        try:
            yield
        except docker.errors.APIError as error:
            if "no space left on device" in str(error):
                raise OutsideSystemError("docker", f"{what}: no space left", remedy="Free some space") from error
            raise
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            raise OutsideSystemError("docker", f"{what}: no answer", why=str(error)[:300], remedy=_REMEDY) from error

    def nano_cpus(self, cpus: float) -> int:
        """Return *cpus* in the unit of containers, capped at what the daemon's machine has: it refuses more.

        https://docs.docker.com/reference/api/engine/ (`HostConfig.NanoCpus`).
        """
        return int(min(cpus, self._machine_cpus) * 1_000_000_000)

    def cores(self, cpus: float) -> int:
        """Return the number of cores in which *cpus* run."""
        return math.ceil(self.nano_cpus(cpus) / 1_000_000_000)

    @cached_property
    def _machine_cpus(self) -> int:
        with self.watched("ask for its CPUs"):
            return int(self.client.info()["NCPU"])

    @cached_property
    def data_root(self) -> Path | None:
        """The folder of its images and its build cache; None if it is not on this machine."""
        if not self.environment.get("DOCKER_HOST", "unix://").startswith("unix://"):
            return None
        with self.watched("ask for its folder"):
            root = Path(str(self.client.info().get("DockerRootDir") or "/nowhere"))
        return root if root.is_dir() else None

    def image(self, reference: str) -> Image | None:
        """Return the image that *reference*, a name or a digest, denotes here; None if there is none."""
        import docker.errors

        with self.watched(f"look for {reference}"), suppress(docker.errors.ImageNotFound):
            return self.client.images.get(reference)
        return None

    def in_use(self, tag: str) -> Image | None:
        """Return the image that *tag* denotes here, tagged again so that housekeeping sees it in use; None if there is
        none.
        """
        import docker.errors

        image, (repository, _, name) = self.image(tag), tag.rpartition(":")
        if image is not None:
            with self.watched(f"tag {tag}"), suppress(docker.errors.ImageNotFound):
                image.tag(repository, name)
                return image
        return None


def _text(done: Completed) -> str:
    return (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
