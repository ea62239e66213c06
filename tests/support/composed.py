"""deploy/compose on this machine's daemon, as `make up DEMO=1` starts it, along with any others."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.demo import Ui, free_port
from tests.support.deployments import COMPOSE

STAND_INS = {
    "FC_POSTGRES_IMAGE": "fc-service:postgres",
    "FC_REGISTRY_IMAGE": "fc-service:registry",
    "FC_BUILDER_IMAGE": "fc-service:docker",
    "FC_DOCKER_CLI_IMAGE": "fc-service:docker",
    "FC_PYTHON_IMAGE": "fc-os:py3.12",
}
"""Stand-ins for the public images, by `.ci/make-service-images` and `.ci/make-os-image`."""
START_SECONDS = 600


@dataclass(frozen=True)
class Composed:
    """The services of one project."""

    project: str
    ui: Ui
    environment: Mapping[str, str]

    def up(self) -> None:
        """Build what is not built, and start what does not run; returns once all of it is healthy."""
        self._done(str(COMPOSE / "up.sh"))

    def down(self, *options: str) -> None:
        """End all of it, as `make down` does; `--volumes` takes these, too."""
        self._done(*self._compose, "--profile", "*", "down", "--remove-orphans", *options)

    def services(self) -> dict[str, str]:
        """The state of each service that runs."""
        lines = self._done(*self._compose, "ps", "--format", "json").splitlines()
        return {told["Service"]: told["Health"] or told["State"] for told in map(json.loads, lines)}

    def fc_data(self, *arguments: str) -> str:
        """Output of `fc-data` in the environment of runs."""
        return self._done(*self._compose, "run", "--rm", "--no-TTY", "fc-data", *arguments)

    def run_containers(self, run_id: str) -> list[str]:
        """The containers of a run: none, or one."""
        return self._done("docker", "ps", "--quiet", "--filter", f"label=dagster/run_id={run_id}").split()

    @property
    def _compose(self) -> tuple[str, ...]:
        return ("docker", "compose", "--file", str(COMPOSE / "compose.yaml"))

    def _done(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout


@contextmanager
def composed(name: str, settings: Path) -> Iterator[Composed]:
    """The services with *settings*, under a project of this *name*; nothing is left of them, volumes included."""
    listens, registry = free_port(), free_port()
    environment = {
        **os.environ,
        **STAND_INS,
        "COMPOSE_PROJECT_NAME": name,
        "FC_PLATFORM_IMAGE": f"formulacode/platform:{name}",
        "FC_SETTINGS_FILE": str(settings),
        "FC_LISTEN": f"127.0.0.1:{listens}",
        "FC_REGISTRY_LISTEN": f"127.0.0.1:{registry}",
        "FC_CA_BUNDLE": os.environ.get("SSL_CERT_FILE", ""),
        "DEMO": "1",
    }
    services = Composed(name, Ui(f"http://127.0.0.1:{listens}"), environment)
    try:
        services.up()
        yield services
    finally:
        services.down("--volumes")
        subprocess.run(["docker", "image", "rm", environment["FC_PLATFORM_IMAGE"]], capture_output=True, check=False)
