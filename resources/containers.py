"""Builds and runs images: Docker, or folders of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from pathlib import Path

from pydantic import PrivateAttr

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.image_store import DockerImageStore
from formulacode_dagster.building.engines.docker.leftovers import RunIsOver, nobody_knows
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.engines.image_store import ImageStore
from formulacode_dagster.building.engines.installation import installation_id
from formulacode_dagster.building.engines.machines import Machine, Turn
from formulacode_dagster.building.engines.process.image_store import ProcessImageStore
from formulacode_dagster.building.engines.process.interpreters import installed_interpreters
from formulacode_dagster.building.engines.processes import can_confine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.engines.select import choose_engine, require_same_engine
from formulacode_dagster.building.housekeeping.cleanup import Budgets
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.image import EngineName, ResourceLimits
from formulacode_dagster.models.items import Stage, repository_of
from formulacode_dagster.operating.store.attempts import engines_of
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import done_items

from .base import SettingsResource, setting
from .setting_types import EngineChoice


class ContainersResource(SettingsResource):
    """Hands out the engine and the limits untrusted code is held to."""

    home: str | None = setting("home")
    github_clone_url: str | None = setting("github_clone_url")
    offline_source: str | None = setting("offline_source")
    engine: EngineChoice | None = setting("engine")
    os_image: str | None = setting("os_image")
    build_network: str | None = setting("build_network")
    build_cgroup: str | None = setting("build_cgroup")
    ca_bundle: str | None = setting("ca_bundle")
    cpus: float | None = setting("cpus")
    memory_mb: int | None = setting("memory_mb")
    disk_mb: int | None = setting("disk_mb")
    build_seconds: int | None = setting("build_seconds")
    benchmark_seconds: int | None = setting("benchmark_seconds")
    images_gb: float | None = setting("images_gb")
    build_cache_gb: float | None = setting("build_cache_gb")

    _chosen: tuple[Engine, str] | None = PrivateAttr(default=None)

    def preflight(self) -> tuple[bool, str]:
        """Say which engine is at work, and which interpreters it has."""
        engine, why = self.chosen()
        versions = engine.interpreters()
        if versions is not None and not versions:
            return False, f"{why}; it has no interpreter: set FC_OS_IMAGE to an image that is here or can be pulled"
        if engine.name is EngineName.PROCESS and not can_confine():
            return False, (
                f"{why}; this user may open no namespaces: builds and measurements run as you, and only the samples are"
                " built. Allow them (user.max_user_namespaces), or build with Docker"
            )
        return True, f"{why}; interpreters: {', '.join(sorted(versions)) if versions else 'any'}"

    def resolver(self, turn: Turn = nullcontext) -> Resolver:
        """Return the resolver from requirements to hashed locks; it builds source distributions only in its *turn*."""
        engine, _ = self.chosen()
        reading = engine.uv_runner() if isinstance(engine, DockerEngine) else None

        def interpreters() -> dict[str, Path]:
            import uv

            return {minor: interpreter.path for minor, interpreter in installed_interpreters(uv.find_uv_bin()).items()}

        return Resolver(self.settings.home / "cache" / "locks", interpreters=interpreters, reading=reading, turn=turn)

    @property
    def limits(self) -> ResourceLimits:
        """Limits of a build or a benchmark."""
        return ResourceLimits.model_validate(self.settings, from_attributes=True)

    def engine_for(self, database: Database, month: str) -> tuple[Engine, str]:
        """The engine for *month*, and a sentence saying which it is and why.

        Raises OutsideSystemError if that would be folders of this machine because Docker does not answer, and the month
        was built with Docker, or holds candidates of repositories other than the samples.
        """
        with database.transaction() as connection:
            items = done_items(connection, month, Stage.CLASSIFICATIONS).values()
            engines = engines_of(connection, month)
        return self.engine_for_repositories({repository_of(item) for item in items}, engines)

    def engine_for_repositories(
        self, names: Iterable[str], built_with: Collection[EngineName] = ()
    ) -> tuple[Engine, str]:
        """The engine for repositories by name, of a month with images *built_with* some; raises as `engine_for`."""
        strangers = {name for name in names if not self._is_sample(name)}
        chosen = self.chosen()
        require_same_engine(self.settings.engine.value, chosen, strangers=strangers, built_with=built_with)
        return chosen

    def _is_sample(self, repository: str) -> bool:
        """Return True if *repository* is one that the demo has made, and is cloned from there."""
        settings = self.settings
        made = settings.home / "sandbox" / "repositories"
        served = settings.clone_url.rstrip("/") == made.as_uri() and not settings.offline_source
        return served and (made / f"{repository}.git").is_dir()

    def chosen(self) -> tuple[Engine, str]:
        """Return the configured engine, for any month, and a sentence on the choice and its reason."""
        if self._chosen is None:
            settings = self.settings
            builds = DockerBuildSettings(
                self.limits,
                settings.build_network,
                self.certificates(),
                installation=self._installation(),
                cgroup_parent=settings.build_cgroup,
            )
            self._chosen = choose_engine(settings.engine, root=self._builds, os_image=settings.os_image, builds=builds)
        return self._chosen

    @property
    def budgets(self) -> Budgets:
        """Limits of images and build cache in any store."""
        return Budgets(
            images=int(self.settings.images_gb * 1e9) or None,
            build_cache=int(self.settings.build_cache_gb * 1e9) or None,
        )

    def machine(self, database: Database, engine: Engine, note: Callable[[str], None] | None = None) -> Machine:
        """Return the machine of *engine*, as runs over *database* share it; *note* is called for each wait."""
        apart = bool(self.settings.build_cgroup) and isinstance(engine, DockerEngine)
        return Machine(database, engine.store, apart, note)

    def image_stores(self, run_is_over: RunIsOver = nobody_knows) -> list[ImageStore]:
        """Return the stores of our images: the folders of this machine, and the Docker daemon if it is the engine.

        Leftovers of other machines' runs in the daemon are removed if *run_is_over*.
        """
        engine, _ = self.chosen()
        folders = ProcessImageStore(self._builds)
        return [folders, self.image_store(engine, run_is_over)] if isinstance(engine, DockerEngine) else [folders]

    def image_store(self, engine: Engine, run_is_over: RunIsOver = nobody_knows) -> ImageStore:
        """Return the store that *engine* builds into."""
        if isinstance(engine, DockerEngine):
            return DockerImageStore(engine.daemon, self._installation(), run_is_over)
        return ProcessImageStore(self._builds)

    @property
    def _builds(self) -> Path:
        return self.settings.home / "builds"

    def _installation(self) -> str:
        return installation_id(self.settings.home)

    def certificates(self) -> Path | None:
        """Return certificates for package indexes during builds; None for the defaults."""
        named = self.settings.ca_bundle or os.environ.get("SSL_CERT_FILE")
        if not named:
            return None
        if not Path(named).is_file():
            name = "FC_CA_BUNDLE" if self.settings.ca_bundle else "SSL_CERT_FILE"
            raise ConfigurationError(f"{name} names {named}, which is not a file", remedy="Name a PEM file")
        return Path(named)
