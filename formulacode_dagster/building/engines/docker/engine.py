"""Builds images with BuildKit and measures in containers: the engine whose images can be published."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from formulacode_dagster.building.engines.failures import registry_is_busy, registry_outage
from formulacode_dagster.building.engines.files import Area, ImageConfig, ImageFile
from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.building.engines.processes import FILE_BYTES
from formulacode_dagster.building.engines.protocol import BuildOutcome, Session
from formulacode_dagster.building.specs import context
from formulacode_dagster.building.specs import spec as naming
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName
from formulacode_dagster.models.reasons import FailureKind

from .commands import command_that_serves
from .daemon import LABEL, DockerDaemon
from .export import archive_of, archived_files, image_config
from .leftovers import LIFETIME_SECONDS, remove_container, remove_leftovers
from .session import USER, VENV, DockerSession
from .settings import DockerBuildSettings
from .tier import BuiltTier, TierBuilder
from .toolchain import toolchain_of
from .uv_runner import DockerUvRunner

if TYPE_CHECKING:
    from docker.models.containers import Container


class DockerEngine:
    """Implements `engine.Engine` with a Docker daemon, local or remote."""

    name = EngineName.DOCKER

    def __init__(
        self,
        os_image: str = naming.DEFAULT_OS_IMAGE,
        settings: DockerBuildSettings | None = None,
        *,
        daemon: DockerDaemon | None = None,
    ) -> None:
        """Sessions have the limits of *settings*, too; the rest of them is for builds only.

        Raises ConfigurationError if *os_image* has no place for the interpreter's version.
        """
        if "{python}" not in os_image:
            raise ConfigurationError(
                f"FC_OS_IMAGE={os_image} lacks {{python}}", remedy=f"Write it like {naming.DEFAULT_OS_IMAGE}"
            )
        self._os_image = os_image
        self._settings = settings or DockerBuildSettings()
        self._limits = self._settings.limits
        self._daemon = daemon or DockerDaemon()

    @property
    def daemon(self) -> DockerDaemon:
        """The daemon that builds."""
        return self._daemon

    @cached_property
    def store(self) -> str:
        """The id of the daemon, which may be one that several machines use."""
        with self._daemon.watched("ask the daemon who it is"):
            return str(self._daemon.client.info()["ID"])

    def uv_runner(self) -> DockerUvRunner:
        """Runs the source distributions of a lock in steps of builds."""
        return DockerUvRunner(self._daemon, self._settings, self._os_image)

    def interpreters(self) -> frozenset[str] | None:
        """None if OS images can be pulled; else the versions whose OS image is present.

        Raises OutsideSystemError if the registry answers that it is unavailable.
        """
        return self._interpreters

    def build(
        self,
        spec: BuildSpec,
        origins: Origins,
        *,
        force: bool = False,
        rebuild: bool = False,
        progress: ProgressReporter | None = None,
    ) -> BuildOutcome:
        """Build the tiers of *spec* that are missing, one after the other; see `Engine.build`.

        With *rebuild*, the upper tiers are built anyway, under other tags.
        """
        self._daemon.require_buildx()
        started = time.monotonic()
        named = naming.rebuild_tag if rebuild else str
        builder = TierBuilder(self._daemon, self._settings, spec.task_id, progress=progress)
        labels = {f"{LABEL}.repository": spec.repository}
        base, repo = _repo(builder, spec, origins)
        fill = partial(context.write_locks, spec, fresh=rebuild)
        env_tag = named(naming.env_tag(spec))
        arguments = {"REPO_IMAGE": repo.tag, "CACHE": naming.cache_name(spec)}
        env = builder.tier("env", env_tag, arguments, fill, labels=labels, force=rebuild)
        arguments = {"ENV_IMAGE": env.tag, "REPOSITORY_ID": str(spec.repository_id)}
        arguments |= {"COMPILER_CACHE": ""} if rebuild else {}
        arguments |= {"CRATES": "locked"} if naming.needs_crates(spec) else {}
        labels |= {f"{LABEL}.task": spec.task_id, f"{LABEL}.spec": naming.spec_hash(spec)}
        fill = partial(context.write_task_tier, spec, origins)
        task_tag = named(naming.task_tag(spec))
        task = builder.tier("task", task_tag, arguments, fill, labels=labels, force=force or rebuild)
        return BuildOutcome(
            tag=task.tag,
            digest=task.digest,
            location=task.tag,
            size_bytes=task.size,
            seconds=time.monotonic() - started,
            tiers=(base.over(), repo.over(base), env.over(repo), task.over(env)),
            toolchain=toolchain_of(self._daemon, base.digest, spec),
            log=builder.log,
        )

    def build_base(self, parts: naming.BaseParts) -> BuiltTier:
        """Build only the `base` tier of *parts*; raises as `build`."""
        self._daemon.require_buildx()
        return TierBuilder(self._daemon, self._settings, "base").base(parts)

    def build_repo(self, spec: BuildSpec, origins: Origins) -> BuiltTier:
        """The `repo` tier of *spec*, and the one below; raises as `build`."""
        self._daemon.require_buildx()
        return _repo(TierBuilder(self._daemon, self._settings, spec.task_id), spec, origins)[1]

    def remove_rebuild(self, spec: BuildSpec) -> None:
        """Remove the tiers of *spec* that a rebuild left; see `Engine.remove_rebuild`."""
        import docker.errors

        for tag in map(naming.rebuild_tag, (naming.task_tag(spec), naming.env_tag(spec))):
            with self._daemon.watched(f"remove {tag}"), suppress(docker.errors.ImageNotFound):
                self._daemon.client.images.remove(tag)

    def exists(self, image: BuiltImage) -> bool:
        """Return True if the daemon has the image of that digest."""
        return self._daemon.image(image.digest) is not None

    def location_of(self, digest: str) -> str | None:
        """Return the digest itself if the daemon has it."""
        return digest if self._daemon.image(digest) is not None else None

    @contextmanager
    def session(self, image: BuiltImage, *, run_id: str, like: Session | None = None) -> Iterator[Session]:
        """Open a session in a new container of exactly that digest, or of the current content of the session *like*.

        Raises ItemFailure (`image_gone`) when the image is gone.
        """
        command = command_that_serves(DockerSession.python, LIFETIME_SECONDS)
        content = like.copy() if isinstance(like, DockerSession) else image.digest
        with ExitStack() as stack:
            container = self._create(image, run_id=run_id, command=command, content=content)
            stack.callback(remove_container, self._daemon, container)
            with self._daemon.watched(f"start a container of {image.tag}"):
                container.start()
            session = DockerSession(self._daemon, container, self._limits, image.digest, content)
            stack.callback(session.remove_copies)
            stack.callback(session.commands.release)
            session.commands.hold()
            yield session

    def files(self, image: BuiltImage, *, only_environment: bool = False) -> Iterator[ImageFile]:
        """The files of the image, from a container that never starts."""
        import docker.errors

        root = VENV if only_environment else "/"
        container = self._create(image, run_id="", command=["true"])
        try:
            # not an export, after which Docker 26.1, for one, never frees the image's disk space: moby/moby#48516
            with self._daemon.watched(f"read {image.tag}"), archive_of(container, root) as chunks:
                for file in archived_files(chunks, root):
                    # code may have put a link in place of the folder
                    if not only_environment or file.area is Area.ENVIRONMENT:
                        yield file
        except docker.errors.NotFound:
            # not ours, or removed by its code
            if not only_environment:
                raise
        finally:
            remove_container(self._daemon, container)

    def config(self, image: BuiltImage) -> ImageConfig:
        """The configuration of the image of that digest; raises ItemFailure (`image_gone`) when it is gone."""
        image_on_daemon = self._daemon.image(image.digest)
        if image_on_daemon is None:
            raise _gone(image)
        with self._daemon.watched(f"inspect {image.tag}"):
            return image_config(image_on_daemon.attrs.get("Config") or {}, image_on_daemon.history())

    def clean(self) -> int:
        """Remove containers of dead processes; those of others are not ours to touch."""
        return len(remove_leftovers(self._daemon))

    @cached_property
    def _interpreters(self) -> frozenset[str] | None:
        import docker.errors

        newest = self._os_image.replace("{python}", naming.INSTRUMENT_VERSIONS[-1])
        client = self._daemon.client
        with self._daemon.watched("look for OS images"):
            try:
                client.images.get_registry_data(newest)
            except docker.errors.APIError as error:
                said = str(error.explanation or error)
            else:
                return None
            # not `images.list`, which asks for each again and stumbles over one that goes meanwhile
            here = {tag for image in client.api.images() for tag in image["RepoTags"] or ()}
        versions = frozenset(
            version for version in naming.INSTRUMENT_VERSIONS if self._os_image.replace("{python}", version) in here
        )
        if registry_is_busy(said) and len(versions) < len(naming.INSTRUMENT_VERSIONS):
            # a local image of the same name would be used in place of the right one
            raise registry_outage(newest, said)
        return versions

    def _create(self, image: BuiltImage, *, run_id: str, command: list[str], content: str = "") -> Container:
        """Make a container, whose standard input ends when whoever attached to it first is gone."""
        import docker.errors
        from docker.types import LogConfig, Ulimit

        memory = f"{self._limits.memory_mb}m"
        # a container counts the cores of the machine
        cores = str(self._daemon.cores(self._limits.cpus))
        with self._daemon.watched(f"make a container of {image.tag}"):
            try:
                return self._daemon.client.containers.create(
                    content or image.digest,
                    command,
                    name=f"formulacode-{image.spec.task_id.lower()}-{uuid.uuid4().hex[:12]}",
                    labels={
                        LABEL: "1",
                        f"{LABEL}.run": run_id,
                        f"{LABEL}.task": image.spec.task_id,
                        f"{LABEL}.owner": Owner.current(run_id).model_dump_json(),
                    },
                    environment={"FC_CORES": cores, "PYTHON_CPU_COUNT": cores},
                    stdin_open=True,
                    # what a session writes is read as it comes, and kept nowhere
                    log_config=LogConfig(type=LogConfig.types.NONE),
                    user=USER,
                    network_mode="none",
                    cap_drop=["ALL"],
                    security_opt=["no-new-privileges:true"],
                    mem_limit=memory,
                    memswap_limit=memory,
                    nano_cpus=self._daemon.nano_cpus(self._limits.cpus),
                    pids_limit=self._limits.processes,
                    ulimits=[
                        Ulimit(name="core", soft=0, hard=0),
                        Ulimit(name="fsize", soft=FILE_BYTES, hard=FILE_BYTES),
                    ],
                )
            except docker.errors.ImageNotFound as error:
                raise _gone(image) from error


def _repo(builder: TierBuilder, spec: BuildSpec, origins: Origins) -> tuple[BuiltTier, BuiltTier]:
    """The tiers `base` and `repo` of *spec*."""
    base = builder.base(spec)
    fill = partial(context.write_repo_tier, spec, origins)
    labels = {f"{LABEL}.repository": spec.repository}
    return base, builder.tier("repo", naming.repo_tag(spec), {"BASE_IMAGE": base.tag}, fill, labels=labels)


def _gone(image: BuiltImage) -> ItemFailure:
    return ItemFailure(FailureKind.IMAGE_GONE, f"{image.tag} ({image.digest}) is not here", remedy="Build it again")
