"""The baseline of `bench/images.py`: one Dockerfile a task, as a straightforward author writes it."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from images_tasks import Task

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.specs.spec import resolved_os_image
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.sources.git.command import environment as git_environment

SECONDS = 3600.0


class FlatBuilds:
    """Builds tasks with one Dockerfile each; images are called *namespace*:number."""

    def __init__(
        self, daemon: DockerDaemon, folder: Path, namespace: str, ca_bundle: Path | None, network: str
    ) -> None:
        self._daemon = daemon
        self._folder = folder
        self._namespace = namespace
        self._secret = [f"--secret=id=ca,src={ca_bundle}"] if ca_bundle else []
        self._network = network

    def tag(self, task: Task) -> str:
        """Name of *task*'s image."""
        return f"{self._namespace}:{task.item.rpartition('#')[2]}"

    def build(self, task: Task) -> float:
        """Clone, and build; seconds. Exits with the end of the log when that fails."""
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self._folder) as context:
            clone = ["git", "clone", "--quiet", "--no-checkout", str(task.mirror.path), f"{context}/repo"]
            for command in (clone, ["git", "-C", f"{context}/repo", "checkout", "--quiet", task.spec.base_sha]):
                subprocess.run(command, env=git_environment(), check=True, capture_output=True)
            Path(context, "requirements.txt").write_text(task.spec.lock)
            Path(context, "Dockerfile").write_text(dockerfile(task.spec))
            command = ["buildx", "build", "--progress", "plain", "--load", "--network", self._network]
            done = self._daemon.run([*command, *self._secret, "--tag", self.tag(task), context], timeout=SECONDS)
        if not done.ok:
            raise SystemExit(f"the flat build of {task.item} failed:\n{done.stderr.decode(errors='replace')[-2000:]}")
        return time.monotonic() - started


def dockerfile(spec: BuildSpec) -> str:
    """System packages, the clone, pip's packages, the build."""
    run = "RUN --mount=type=secret,id=ca"
    packages = shlex.join(["build-essential", "git", *spec.apt_packages])
    lines = [
        f"FROM {resolved_os_image(spec)}",
        f"{run} o=; [ ! -s /run/secrets/ca ] || o='-o Acquire::https::CAInfo=/run/secrets/ca'; "
        f"apt-get $o update && apt-get $o install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*",
        "RUN python3 -m venv /opt/venv",
        "ENV PATH=/opt/venv/bin:$PATH",
        "COPY . /workspace",
        f"{run} [ ! -s /run/secrets/ca ] || export PIP_CERT=/run/secrets/ca; "
        "pip install --no-cache-dir --no-deps --require-hashes --requirement /workspace/requirements.txt && "
        f"pip install --no-cache-dir --no-deps {shlex.join(spec.instrument)}",
        *(f"ENV {name}={json.dumps(value)}" for name, value in spec.build_environment.items()),
    ]
    for command in spec.commands:
        lines += [f"WORKDIR /workspace/repo/{command.folder}", f"RUN {shlex.join(command.argv)}"]
    lines += [
        f"WORKDIR /workspace/repo/{spec.package_root}",
        "RUN pip install --no-cache-dir --no-deps --no-build-isolation .",
    ]
    return "".join(f"{line}\n" for line in lines)
