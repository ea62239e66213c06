"""The container an agent runs in: no network, no privileges, nothing of the host but a folder with sockets to read.

It is discarded after each run, whatever runs in it, and it ends by itself when this process is gone.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from formulacode_dagster.building.engines.docker.daemon import LABEL, DockerDaemon
from formulacode_dagster.building.engines.docker.leftovers import remove_container
from formulacode_dagster.building.engines.docker.session import USER
from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.engines.scratch import scratch_folder
from formulacode_dagster.models.errors import ConfigurationError

from . import bridge
from .workspace import LONGEST_ARCHIVE, WorkspacePaths

if TYPE_CHECKING:
    from docker.models.containers import Container

USER_HOME = "/home/agent"
PORT = 8787
"""User and group of the forwarder, inside."""
SHORT_SECONDS = 120.0
"""Seconds for copying and reading files."""
_LAY = f"""tar -C / -x --no-overwrite-dir || exit
until (: >/dev/tcp/127.0.0.1/{PORT}) 2>/dev/null; do sleep 0.02; done"""
MOST_OUTPUT = 8 << 20
"""Bytes of each stream; an agent that says more is ended."""


@dataclass(frozen=True)
class Confinement:
    """Resource limits of agents."""

    image: str
    """Any with Python 3, bash and tar; it is not changed."""
    cpus: float = 2.0
    memory_mb: int = 2048
    processes: int = 256
    workspace_mb: int = 16
    scratch_mb: int = 256
    """Size of `/tmp` and of the home folder, each; all three are in memory."""
    mounts: Mapping[Path, str] = field(default_factory=dict)
    """Files and folders of this machine that are there to read and run: the agent itself."""


@dataclass(frozen=True)
class AgentContainer:
    """A running container; `sockets` is the folder of this machine that it reads."""

    daemon: DockerDaemon
    container: Container
    sockets: Path

    def lay(self, archive: bytes) -> None:
        """Unpack *archive* at `/`, as the agent's user, and wait until the bridge to its model listens."""
        laid = self._exec(["bash", "-c", _LAY], timeout=SHORT_SECONDS, stdin=archive)
        if not laid.ok:
            raise ConfigurationError(
                "the files of the task cannot be copied into the agent's container",
                why=laid.stderr.decode(errors="replace")[-300:],
                remedy="Take an image with Python 3, bash and tar: FC_AGENT_IMAGE",
            )

    def run(
        self, argv: Sequence[str], *, timeout: float, environment: Mapping[str, str], stdin: bytes, cwd: str
    ) -> Completed:
        """Run the agent; its child processes continue until the container ends."""
        return self._exec(argv, timeout=timeout, environment=environment, stdin=stdin, cwd=cwd)

    def workspace(self, folder: str) -> bytes | None:
        """The workspace as a tar, of which not more than `LONGEST_ARCHIVE` bytes are taken; None when it is gone."""
        argv = ["tar", "-C", folder, "-c", "."]
        packed = self._exec(argv, timeout=SHORT_SECONDS, most_output=LONGEST_ARCHIVE)
        return packed.stdout if packed.ok or len(packed.stdout) >= LONGEST_ARCHIVE else None

    def end(self) -> None:
        """End all that runs inside, from any thread."""
        remove_container(self.daemon, self.container)

    def _exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: str = "/",
        most_output: int = MOST_OUTPUT,
    ) -> Completed:
        options = ["exec", "--workdir", cwd, *(["--interactive"] if stdin is not None else [])]
        options += [f"--env={name}={value}" for name, value in (environment or {}).items()]
        command = [*options, str(self.container.id), *argv]
        return self.daemon.run(command, timeout=timeout, stdin=stdin, most_output=most_output)


def require_place(daemon: DockerDaemon, bounds: Confinement) -> None:
    """Check that agents can run, and pull their image if it is missing.

    Raises ConfigurationError when the daemon is on another machine, or the image cannot be had; OutsideSystemError when
    no daemon answers.
    """
    import docker.errors

    host = daemon.environment.get("DOCKER_HOST", "unix://")
    if not host.startswith("unix://"):
        raise ConfigurationError(
            "agents need a Docker daemon of this machine, which can mount their sockets",
            why=f"DOCKER_HOST is {host}",
            remedy="Run stages with agents on the daemon's machine, or set FC_AGENT=none",
        )
    if daemon.image(bounds.image) is not None:
        return
    with daemon.watched(f"pull {bounds.image}"):
        try:
            daemon.client.images.pull(bounds.image)
        except docker.errors.APIError as error:
            raise ConfigurationError(
                f"the image {bounds.image} of agents is neither here nor to be pulled",
                why=str(error.explanation or error)[:300],
                remedy="Set FC_AGENT_IMAGE to one that is, with Python 3, bash and tar",
            ) from error


@contextmanager
def confined(
    daemon: DockerDaemon, bounds: Confinement, *, seconds: float, run_id: str = "", places: WorkspacePaths | None = None
) -> Iterator[AgentContainer]:
    """A container for one run of an agent that takes at most *seconds*; gone afterwards, and its folder too.

    Raises as `require_place`.
    """
    places = places or WorkspacePaths()
    require_place(daemon, bounds)
    with scratch_folder() as folder:
        # the agent's user passes through it, and finds only the named entries
        folder.parent.chmod(0o711)
        folder.chmod(0o711)
        program = folder / Path(bridge.__file__).name
        shutil.copy(bridge.__file__, program)
        program.chmod(0o555)
        container = _create(daemon, bounds, folder, seconds=seconds, run_id=run_id, places=places)
        try:
            with daemon.watched("start an agent's container"):
                container.start()
            yield AgentContainer(daemon, container, folder)
        finally:
            remove_container(daemon, container)


def _create(
    daemon: DockerDaemon, bounds: Confinement, folder: Path, *, seconds: float, run_id: str, places: WorkspacePaths
) -> Container:
    from docker.types import LogConfig

    inside = str(Path(places.bridge).parent)
    memory = f"{bounds.memory_mb}m"
    uid, gid = USER.split(":")
    owned = f"uid={uid},gid={gid},mode=0700,nr_inodes=20k,nosuid,nodev"
    readable = {str(path): {"bind": place, "mode": "ro"} for path, place in bounds.mounts.items()}
    with daemon.watched("make an agent's container"):
        return daemon.client.containers.create(
            bounds.image,
            ["python3", "-I", places.bridge, "serve", str(seconds), str(PORT)],
            entrypoint=[],
            name=f"formulacode-agent-{uuid.uuid4().hex[:12]}",
            labels={LABEL: "1", f"{LABEL}.run": run_id, f"{LABEL}.owner": Owner.current(run_id).model_dump_json()},
            init=True,
            user=USER,
            environment={"HOME": USER_HOME},
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true"],
            read_only=True,
            tmpfs={
                places.workspace: f"{owned},noexec,size={bounds.workspace_mb}m",
                places.task: f"{owned},noexec,size={bounds.workspace_mb}m",
                "/tmp": f"{owned},exec,size={bounds.scratch_mb}m",  # noqa: S108 - the container's own
                USER_HOME: f"{owned},exec,size={bounds.scratch_mb}m",
            },
            volumes={str(folder): {"bind": inside, "mode": "ro"}, **readable},
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=daemon.nano_cpus(bounds.cpus),
            pids_limit=bounds.processes,
            log_config=LogConfig(type=LogConfig.types.NONE),
        )
