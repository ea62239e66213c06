"""One build of the Docker engine: the tiers that are not there yet, one after the other, with BuildKit."""

from __future__ import annotations

import math
import re
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from formulacode_dagster.models.errors import FormulaCodeError, OutsideSystemError
from formulacode_dagster.models.image import BuildSpec, ResourceLimits, Tier

from . import context, recipes
from . import spec as naming
from .context import Origins
from .docker_daemon import INSTALLATION_LABEL, LABEL, DockerDaemon
from .docker_toolchain import OS_DIGEST_LABEL, os_digest, toolchain_of
from .engine import BuildOutcome, Progress
from .failures import BuildFailure, code_of_step, docker_is_dead, failure_of
from .processes import FILE_BYTES
from .scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker.models.images import Image

_NO_IMAGE = re.compile(r"failed to resolve source metadata|pull access denied|manifest unknown", re.IGNORECASE)
CRATES_LOST = "formulacode: the crates of Cargo.lock cannot be fetched"
_OFFLINE = re.compile(r'process "[^"]*install-package"')

FORK_BOMB = 8
"""Times the processes that a session may have."""

_tag_locks: dict[str, threading.Lock] = {}
_tag_locks_guard = threading.Lock()


@dataclass(frozen=True)
class BuildSettings:
    """What all builds of an engine share."""

    limits: ResourceLimits
    network: str
    ca_bundle: Path | None
    index: Mapping[str, str]
    installation: str = ""
    """Who builds, as a label says it: several installations may share a daemon, and each tidies what it made."""
    cgroup_parent: str = ""
    """Of the steps of a build, on the daemon's machine; its limits are set there."""
    cache_namespace: str = ""
    """Of what builds keep for each other (downloads, compiled objects); another one starts with nothing."""


class DockerBuild:
    """The tiers of one build, their common deadline and their log."""

    def __init__(
        self,
        daemon: DockerDaemon,
        settings: BuildSettings,
        spec: BuildSpec,
        origins: Origins,
        progress: Progress | None,
    ) -> None:
        self._daemon = daemon
        self._settings = settings
        self._spec = spec
        self._origins = origins
        self._progress = progress
        self._lines: list[str] = []
        self._deadline = time.monotonic() + settings.limits.build_seconds

    def run(self, *, force: bool, aside: bool) -> BuildOutcome:
        """Build what is missing; with *force* the task tier anyway, with *aside* the upper tiers under other tags.

        Raises what `failure_of` says.
        """
        spec = self._spec
        named = naming.aside_tag if aside else str
        started = time.monotonic()
        os_image = naming.resolved_os_image(spec)
        fill = partial(context.write_base_tier, spec)
        base = self._tier("base", naming.base_tag(spec), {"OS_IMAGE": os_image}, fill)
        fill = partial(context.write_repo_tier, spec, self._origins)
        repo = self._tier("repo", naming.repo_tag(spec), {"BASE_IMAGE": base.tag}, fill)
        fill = partial(context.write_locks, spec, fresh=aside)
        env = self._tier("env", named(naming.env_tag(spec)), {"REPO_IMAGE": repo.tag}, fill, force=aside)
        arguments = {"ENV_IMAGE": env.tag, "REPOSITORY_ID": str(spec.repository_id)}
        arguments |= {"COMPILER_CACHE": ""} if aside else {}
        arguments |= {"CRATES": "locked"} if naming.needs_crates(spec) else {}
        fill = partial(context.write_task_tier, spec, self._origins)
        task = self._tier("task", named(naming.task_tag(spec)), arguments, fill, force=force or aside)
        return BuildOutcome(
            tag=task.tag,
            digest=task.digest,
            location=task.tag,
            size_bytes=task.size,
            seconds=time.monotonic() - started,
            tiers=(base.tier(), repo.tier(base), env.tier(repo), task.tier(env)),
            toolchain=toolchain_of(self._daemon, base.digest, spec),
            log="".join(f"{line}\n" for line in self._lines),
        )

    def _tier(
        self,
        name: str,
        tag: str,
        arguments: dict[str, str],
        fill: Callable[[Path], None],
        *,
        force: bool = False,
    ) -> _Built:
        started = time.monotonic()
        # Tasks that are built side by side need the same lower tiers.
        with _lock_of(tag):
            image = None if force else self._find(tag)
            if image is None:
                self._say(f"$ build {tag}")
                with scratch_folder() as folder:
                    fill(folder)
                    self._build(name, tag, arguments, folder, again=force)
                image = self._find(tag)
            else:
                self._say(f"$ {tag} is there already")
        if image is None:
            raise OutsideSystemError("docker", f"{tag} was built, but is not there", remedy="Use Docker's own builder")
        return _Built(name, tag, str(image.id), int(image.attrs["Size"]), time.monotonic() - started)

    def _find(self, tag: str) -> Image | None:
        import docker.errors

        with self._daemon.watched(f"look for {tag}"):
            try:
                return self._daemon.client.images.get(tag)
            except docker.errors.ImageNotFound:
                return None

    def _build(self, name: str, tag: str, arguments: dict[str, str], folder: Path, *, again: bool) -> None:
        command = ["buildx", "build", "--progress", "plain", "--load", "--tag", tag]
        command += ["--no-cache"] if again else []
        command += [f"--cgroup-parent={parent}"] if (parent := self._settings.cgroup_parent) else []
        command += ["--file", str(recipes.dockerfile(name)), "--network", self._settings.network]
        labels = {LABEL: "1", f"{LABEL}.tier": name, f"{LABEL}.repository": self._spec.repository}
        if self._settings.installation:
            labels[INSTALLATION_LABEL] = self._settings.installation
        if name == "task":
            labels |= {f"{LABEL}.task": self._spec.task_id, f"{LABEL}.spec": naming.spec_hash(self._spec)}
        if name == "base":
            del labels[f"{LABEL}.repository"]
            labels |= {OS_DIGEST_LABEL: os_digest(self._daemon, arguments["OS_IMAGE"])}
        command += [f"--label={key}={value}" for key, value in labels.items()]
        if self._settings.cache_namespace:
            arguments = {**arguments, "BUILDKIT_CACHE_MOUNT_NS": self._settings.cache_namespace}
        command += [f"--build-arg={key}={value}" for key, value in arguments.items()]
        command += [f"--ulimit={limit}" for limit in self._ulimits()]
        with self._secrets() as secrets:
            done = self._daemon.run(
                [*command, *secrets, str(folder)],
                timeout=max(0.1, self._deadline - time.monotonic()),
                progress=self._say,
            )
        if not done.ok:
            raise self._failure(name, timed_out=done.timed_out)

    def _ulimits(self) -> list[str]:
        limits = self._settings.limits
        memory = limits.memory_mb * 1024 * 1024
        seconds = math.ceil(limits.build_seconds * max(1.0, limits.cpus))
        # The kernel counts all that the user's number runs on that machine, so this stops a fork bomb and no more.
        processes = limits.processes * FORK_BOMB
        return [
            f"data={memory}:{memory}",
            f"fsize={FILE_BYTES}:{FILE_BYTES}",
            f"cpu={seconds}:{seconds}",
            f"nproc={processes}:{processes}",
            "core=0:0",
        ]

    @contextmanager
    def _secrets(self) -> Iterator[list[str]]:
        """Command line options for what a build may read and no layer may hold."""
        options = []
        if self._settings.ca_bundle is not None:
            options.append(f"--secret=id=ca,src={self._settings.ca_bundle}")
        with scratch_folder() as folder:
            if self._settings.index:
                lines = [f"{name}={shlex.quote(value)}\n" for name, value in self._settings.index.items()]
                (folder / "index").write_text("".join(lines))
                options.append(f"--secret=id=index,src={folder / 'index'}")
            yield options

    def _failure(self, tier: str, *, timed_out: bool) -> FormulaCodeError:
        log = "".join(f"{line}\n" for line in self._lines)
        end = "\n".join(self._lines[-15:])
        what = f"{tier} tier of {self._spec.task_id}"
        if not timed_out and docker_is_dead(end):
            return OutsideSystemError("docker", f"{what}: the daemon is gone", remedy="Start Docker, then run again")
        if tier == "base" and _NO_IMAGE.search(end):
            return BuildFailure(
                "interpreter",
                f"OS image {naming.resolved_os_image(self._spec)} cannot be had",
                log=log,
                stage=tier,
                remedy="Pull it, or set FC_OS_IMAGE to one that this machine has",
            )
        if CRATES_LOST in end:
            return BuildFailure("crates", f"{what}: the crates of Cargo.lock cannot be fetched", log=log, stage=tier)
        return failure_of(
            what,
            stage=tier,
            rc=code_of_step(end),
            log=log,
            online=_OFFLINE.search(end) is None,
            timed_out=timed_out,
            seconds=self._settings.limits.build_seconds,
        )

    def _say(self, line: str) -> None:
        self._lines.append(line)
        if self._progress is not None:
            self._progress(line)


@dataclass(frozen=True)
class _Built:
    name: str
    tag: str
    digest: str
    size: int
    seconds: float

    def tier(self, below: _Built | None = None) -> Tier:
        """The tier with what it adds to the one *below* it."""
        size = self.size - (below.size if below else 0)
        return Tier(name=self.name, tag=self.tag, seconds=self.seconds, size_bytes=size)


def _lock_of(tag: str) -> threading.Lock:
    with _tag_locks_guard:
        return _tag_locks.setdefault(tag, threading.Lock())
