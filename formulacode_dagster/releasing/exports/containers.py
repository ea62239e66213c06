"""Containers of one exported task: the agent's, and a fresh one in which its changes are graded."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.docker.daemon import LABEL, DockerDaemon
from formulacode_dagster.building.engines.docker.held_input import HeldInput, command_that_waits
from formulacode_dagster.building.engines.docker.leftovers import GRADED_IN
from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError

from .formats import AGENT_DIFF, COMMON_TEST, build_context, collect_script

AGENT_USER = "formulacode"
BUILD_SECONDS, FILE_SECONDS, AGENT_SECONDS = 1800.0, 300.0, 3 * 3600.0
GRADING_SECONDS = 6 * 3600.0
TAIL_CHARACTERS = 3000
REPORT = "/logs/verifier/report.json"


@dataclass(frozen=True)
class TaskContainer:
    """A running container of a task's image, without a network."""

    daemon: DockerDaemon
    name: str

    def put(self, source: Path, target: str) -> None:
        """Copy a file, or the content of a folder, to *target*."""
        what = f"{source.resolve()}{'/.' if source.is_dir() else ''}"
        _run(self.daemon, ["cp", what, f"{self.name}:{target}"], FILE_SECONDS)

    def work(self, command: Sequence[str]) -> None:
        """Run the agent's *command* in the checkout; raises ConfigurationError if it fails."""
        done = self.daemon.run(["exec", f"--user={AGENT_USER}", self.name, *command], timeout=AGENT_SECONDS)
        if not done.ok:
            raise ConfigurationError(f"the agent ended with status {done.rc}", why=_end_of(done.stdout, done.stderr))

    def collect(self) -> bytes | None:
        """End the agent, and return its changes of the checkout as a patch; None if the container does not give it."""
        command = ["exec", "--user=root", self.name, "/bin/sh", "-c", collect_script()]
        return self.read(AGENT_DIFF) if self.daemon.run(command, timeout=FILE_SECONDS).ok else None

    def grade(self, tests: Path, *options: str) -> tuple[dict[str, Any] | None, str]:
        """Run the grader of the folder *tests*; return its report, None if it broke off, and the end of its output."""
        self.put(tests, "/tests")
        command = ["exec", "--user=root", self.name, f"/{COMMON_TEST}", *options]
        done = self.daemon.run(command, timeout=GRADING_SECONDS)
        report = self.read(REPORT)
        return None if report is None else json.loads(report), _end_of(done.stdout, done.stderr)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None without it."""
        done = self.daemon.run(["exec", "--user=root", self.name, "cat", path], timeout=FILE_SECONDS)
        return done.stdout if done.ok else None


@contextmanager
def task_image(folder: Path, daemon: DockerDaemon) -> Iterator[str]:
    """Build the image of the exported task in *folder*; yield its name, and remove it at the end.

    Each time it is an image of its own, by a label: the daemon fails a build whose equal another grading removes.
    The label of its owner lets the next run remove it if this process is killed.
    """
    use = uuid.uuid4().hex
    name = f"formulacode-evaluate:{use}"
    context = str(build_context(folder).resolve())
    try:
        owner = Owner.current("").model_dump_json()
        marks = [f"--tag={name}", f"--label={GRADED_IN}={use}", f"--label={LABEL}.owner={owner}"]
        _run(daemon, ["build", "--quiet", *marks, context], BUILD_SECONDS)
        yield name
    finally:
        daemon.run(["rmi", name], timeout=FILE_SECONDS)


@contextmanager
def task_container(image: str, limits: dict[str, Any], daemon: DockerDaemon) -> Iterator[TaskContainer]:
    """Start a container of *image* within the *limits* of the task; it is gone at the end.

    It ends and is removed by itself, too, if this process is killed.
    """
    name = f"formulacode-evaluate-{uuid.uuid4().hex[:12]}"
    bounds = [f"--cpus={limits['cpus']}", f"--memory={limits['memory_mb']}m", f"--pids-limit={limits['processes']}"]
    # what keeps the container is root's, so that all of the agent's can be ended
    options = ["--interactive", "--rm", "--user=root", "--network=none", *bounds, f"--name={name}"]
    with ExitStack() as stack:
        stack.callback(_remove, daemon, name)
        wait = command_that_waits(AGENT_SECONDS + GRADING_SECONDS)
        _run(daemon, ["create", *options, image, *wait], FILE_SECONDS)
        with daemon.watched(f"start {name}"):
            container = daemon.client.containers.get(name)
            container.start()
        held = HeldInput(daemon, container)
        stack.callback(held.release)
        held.hold()
        yield TaskContainer(daemon, name)


def _remove(daemon: DockerDaemon, name: str) -> None:
    """Remove a container, and wait until it is gone: the daemon, too, removes one that has ended, and may be at it."""
    import docker.errors

    with contextlib.suppress(docker.errors.NotFound), daemon.watched(f"remove {name}"):
        container = daemon.client.containers.get(name)
        with contextlib.suppress(docker.errors.APIError):
            container.remove(force=True, v=True)
        container.wait(condition="removed", timeout=FILE_SECONDS)


def _end_of(*outputs: bytes) -> str:
    return b"\n".join(outputs).decode(errors="replace")[-TAIL_CHARACTERS:].strip()


def _run(daemon: DockerDaemon, arguments: list[str], timeout: float) -> None:
    done = daemon.run(arguments, timeout=timeout)
    if not done.ok:
        raise OutsideSystemError("docker", f"`docker {arguments[0]}` failed", why=_end_of(done.stderr))
