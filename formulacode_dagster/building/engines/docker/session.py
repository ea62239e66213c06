"""A session of the Docker engine: a container without network, privileges or mounts, thrown away when it closes."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.reasons import FailureKind

from .commands import CommandChannel
from .daemon import DockerDaemon
from .disk import DiskWatch

if TYPE_CHECKING:
    from docker.models.containers import Container

USER = "1000:1000"
HOME = "/home/formulacode"
VENV = "/opt/venv"
REPOSITORY = "/workspace/repo"
TOOLS = "/opt/formulacode"
INSTRUMENT = f"{TOOLS}/instrument"
HARNESS = f"{TOOLS}/harness"
TESTS = f"{TOOLS}/tests"


class DockerSession:
    """Implements `engine.Session` in *container*."""

    python = f"{VENV}/bin/python"
    repository = REPOSITORY
    harness = HARNESS
    tests = TESTS
    compiler: str | None = None

    def __init__(
        self, daemon: DockerDaemon, container: Container, limits: ResourceLimits, image: str, content: str
    ) -> None:
        """*content* is the id of the image that *container* was made from: *image*, or a copy of another session."""
        self.image: str | None = image
        self._content: str | None = content
        self._copies: list[str] = []
        self._daemon = daemon
        self._container = container
        self._disk = DiskWatch(container, limits.disk_mb * 1024 * 1024)
        self.commands = CommandChannel(daemon, container)

    def copy(self) -> str:
        """Return the id of an image of the current content, which has no tag, and the labels of the container.

        A new one is made only after a command ran or a file was put; `remove_copies` removes those that were made.
        """
        if self._content is None:
            with self._daemon.watched("copy a session"):
                self._content = str(self._container.commit().id)
            self._copies.append(self._content)
        return self._content

    def remove_copies(self) -> None:
        """Remove the images that `copy` made; no container may use one any more."""
        import docker.errors

        for copy in self._copies:
            with self._daemon.watched("remove the copy of a session"), suppress(docker.errors.ImageNotFound):
                self._daemon.client.images.remove(copy)

    def put(self, name: str, content: bytes, *, executable: bool = False) -> str:
        """Write a file to the harness folder, owned by root and read-only for everybody."""
        if PurePosixPath(name).name != name:
            raise ValueError(f"{name!r} is not a plain file name")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o555 if executable else 0o444
            entry.mtime = int(time.time())
            archive.addfile(entry, io.BytesIO(content))
        self._content = None
        with self._daemon.watched(f"put {name}"):
            self._container.put_archive(HARNESS, packed.getvalue())
        return f"{HARNESS}/{name}"

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> Completed:
        """Run a command, outside the checkout unless *cwd* is given, so that sources do not shadow the built package.

        Raises ItemFailure (`session_gone`) when it ended the container, (`disk`) when it wrote more than it may.
        """
        wanted = dict(environment or {})
        # First on the path, so that no package of the image can replace the harness.
        others = [wanted["PYTHONPATH"]] if wanted.get("PYTHONPATH") else []
        wanted["PYTHONPATH"] = os.pathsep.join([INSTRUMENT, *others])
        return self._exec(argv, timeout=timeout, cwd=cwd or HOME, environment=wanted, stdin=stdin)

    def reinstall(self, *, timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        """Reinstall the package from the current checkout, by the script that built the image."""
        script = [f"{TOOLS}/bin/install-package"]
        return self._exec(script, timeout=timeout, cwd=HOME, environment=environment or {}, stdin=None)

    def _exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str,
        environment: Mapping[str, str],
        stdin: bytes | None,
    ) -> Completed:
        self._content = None
        self._disk.look_if_due()
        if self._disk.written is not None:
            raise _wrote(f"the commands before {argv[0]} wrote {self._disk.written / 1e6:.0f} MB")
        with self._disk:
            end = self.commands.run(argv, timeout=timeout, cwd=cwd, environment=environment, stdin=stdin)
        if self._disk.written is not None:
            raise _wrote(f"{argv[0]} was ended after it had written {self._disk.written / 1e6:.0f} MB")
        if end.with_container:
            with self._daemon.watched(f"look after {argv[0]}"):
                self._daemon.client.ping()
            raise _gone(argv[0], end.completed.stderr.decode(errors="replace")[-300:].strip())
        if end.completed.timed_out or end.survivors:
            self._restart(argv[0])
        return end.completed

    def _restart(self, command: str) -> None:
        """Kill all processes of *command*: survivors would disturb the next measurement, and may dodge a signal."""
        import docker.errors

        with self._daemon.watched(f"end {command}"):
            try:
                self._container.restart(timeout=0)
            except docker.errors.APIError as error:
                if "no space left" in str(error):
                    raise
                raise _gone(command, str(error.explanation)[:300]) from error
        self.commands.hold()


def _wrote(what: str) -> ItemFailure:
    return ItemFailure(FailureKind.DISK, what, remedy="Check what the code writes; FC_DISK_MB is the limit")


def _gone(command: str, why: str = "") -> ItemFailure:
    return ItemFailure(
        FailureKind.SESSION_GONE,
        f"the container ended under {command}",
        why=why,
        remedy="Check what the code does to other processes",
    )
