"""Settings shared by all builds of the Docker engine: limits, network, and access to the index, kept out of layers."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from formulacode_dagster.building.engines.processes import FILE_BYTES
from formulacode_dagster.building.engines.scratch import scratch_folder
from formulacode_dagster.models.image import ResourceLimits

FORK_BOMB = 8
"""Times the processes that a session may have."""


@dataclass(frozen=True)
class DockerBuildSettings:
    """Settings shared by all builds of an engine."""

    limits: ResourceLimits = field(default_factory=ResourceLimits)
    network: str = "default"
    ca_bundle: Path | None = None
    index: Mapping[str, str] = field(default_factory=dict)
    """Variables of uv, without credentials: the code in a step may read them. Like *ca_bundle*, they enter no layer."""
    installation: str = ""
    """Owner label of the builds: several installations may share a daemon, and each cleans up its own.

    Without one, housekeeping leaves the images untouched.
    """
    cgroup_parent: str = ""
    """Builder of the steps, on the daemon's machine; its limits are set there."""
    cache_namespace: str = ""
    """Name of the cache that builds share (downloads, compiled objects); a new name starts empty."""

    @contextmanager
    def options(self) -> Iterator[list[str]]:
        """These settings as options of `docker buildx build`."""
        options = ["--network", self.network]
        options += [f"--cgroup-parent={self.cgroup_parent}"] if self.cgroup_parent else []
        if self.cache_namespace:
            options.append(f"--build-arg=BUILDKIT_CACHE_MOUNT_NS={self.cache_namespace}")
        options += [f"--ulimit={limit}" for limit in self._ulimits()]
        # not an argument, which would be part of layers
        variables = {"FC_CORES": str(math.ceil(self.limits.cpus)), **self.index}
        index = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
        with scratch_folder() as folder:
            (folder / "ca").write_bytes(self.ca_bundle.read_bytes() if self.ca_bundle else b"")
            (folder / "index").write_text(index)
            for path in folder.iterdir():
                path.chmod(0o644)
            # no secrets: in Docker 26 to 27.1, a step that mounts one first hashes all files of its image
            # https://github.com/moby/buildkit/pull/5251
            yield [*options, f"--build-context=access={folder}"]

    def _ulimits(self) -> list[str]:
        memory = self.limits.memory_mb * 1024 * 1024
        seconds = math.ceil(self.limits.build_seconds * max(1.0, self.limits.cpus))
        # The kernel counts all that the user's number runs on that machine, so this stops a fork bomb and no more.
        processes = self.limits.processes * FORK_BOMB
        return [
            f"data={memory}:{memory}",
            f"fsize={FILE_BYTES}:{FILE_BYTES}",
            f"cpu={seconds}:{seconds}",
            f"nproc={processes}:{processes}",
            "core=0:0",
        ]
