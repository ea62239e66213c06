"""What builds and runs images: Docker, or folders of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from formulacode_dagster.engines.docker.engine import DockerEngine
from formulacode_dagster.engines.docker.image_store import DockerImageStore
from formulacode_dagster.engines.image_store import ImageStore
from formulacode_dagster.engines.installation import installation_id
from formulacode_dagster.engines.process.image_store import ProcessImageStore
from formulacode_dagster.engines.process.interpreters import installed_interpreters
from formulacode_dagster.engines.protocol import Engine
from formulacode_dagster.engines.select import choose_engine
from formulacode_dagster.environments.resolver import Resolver
from formulacode_dagster.git.eviction import GIGABYTE
from formulacode_dagster.housekeeping.cleanup import Budgets
from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.image import ResourceLimits

from .settings import decimal_number, whole_number


class ContainersResource(dg.ConfigurableResource[Any]):
    """Hands out the engine and the limits untrusted code is held to."""

    engine: str
    os_image: str
    home: str
    build_network: str
    build_cgroup: str
    ca_bundle: str
    cpus: str
    memory_mb: str
    disk_mb: str
    build_seconds: str
    benchmark_seconds: str
    rounds: str
    sample_seconds: str
    measure_seconds: str
    images_gigabytes: str
    build_cache_gigabytes: str

    _chosen: tuple[Engine, str] | None = PrivateAttr(default=None)

    def preflight(self) -> tuple[bool, str]:
        """Say which engine is at work, and which interpreters it has."""
        engine, why = self.chosen()
        versions = engine.interpreters()
        if versions is not None and not versions:
            return False, f"{why}; it has no interpreter: set FC_OS_IMAGE to an image that is here or can be pulled"
        return True, f"{why}; interpreters: {', '.join(sorted(versions)) if versions else 'any'}"

    def resolver(self) -> Resolver:
        """What turns declared requirements into hashed locks."""
        engine, _ = self.chosen()
        reading = engine.uv_runner() if isinstance(engine, DockerEngine) else None

        def interpreters() -> dict[str, Path]:
            import uv

            return {minor: found.path for minor, found in installed_interpreters(uv.find_uv_bin()).items()}

        return Resolver(Path(self.home) / "cache" / "locks", interpreters=interpreters, reading=reading)

    @property
    def limits(self) -> ResourceLimits:
        """What a build or a benchmark may use."""
        return ResourceLimits(
            cpus=decimal_number("FC_CPUS", self.cpus),
            memory_mb=whole_number("FC_MEMORY_MB", self.memory_mb, minimum=256),
            disk_mb=whole_number("FC_DISK_MB", self.disk_mb, minimum=256),
            build_seconds=whole_number("FC_BUILD_SECONDS", self.build_seconds, minimum=1),
            benchmark_seconds=whole_number("FC_BENCHMARK_SECONDS", self.benchmark_seconds, minimum=1),
        )

    @property
    def plan(self) -> SamplingPlan:
        """How a task is sampled."""
        return SamplingPlan(
            rounds=whole_number("FC_ROUNDS", self.rounds, minimum=7),
            seconds_per_sample=decimal_number("FC_SAMPLE_SECONDS", self.sample_seconds),
            max_seconds=whole_number("FC_MEASURE_SECONDS", self.measure_seconds, minimum=10),
        )

    def chosen(self) -> tuple[Engine, str]:
        """The engine, and a sentence saying which it is and why."""
        if self._chosen is None:
            self._chosen = choose_engine(
                self.engine,
                root=self._builds,
                os_image=self.os_image,
                limits=self.limits,
                ca_bundle=self.certificates(),
                network=self.build_network,
                build_cgroup=self.build_cgroup,
                installation=self._installation(),
            )
        return self._chosen

    @property
    def budgets(self) -> Budgets:
        """What images and build cache may take, wherever they are kept."""
        return Budgets(
            images=int(decimal_number("FC_IMAGES_GB", self.images_gigabytes) * GIGABYTE) or None,
            build_cache=int(decimal_number("FC_BUILD_CACHE_GB", self.build_cache_gigabytes) * GIGABYTE) or None,
        )

    def image_stores(self) -> list[ImageStore]:
        """Where images of ours are kept: the folders of this machine, and the Docker daemon where it is the engine."""
        engine, _ = self.chosen()
        stores: list[ImageStore] = [ProcessImageStore(self._builds)]
        if isinstance(engine, DockerEngine):
            stores.append(DockerImageStore(engine.daemon, self._installation()))
        return stores

    @property
    def _builds(self) -> Path:
        return Path(self.home) / "builds"

    def _installation(self) -> str:
        return installation_id(Path(self.home))

    def certificates(self) -> Path | None:
        """What package indexes are trusted by while building; None for what every machine trusts."""
        # a machine whose programs need certificates of its own says so in SSL_CERT_FILE
        path = self.ca_bundle or os.environ.get("SSL_CERT_FILE", "")
        if not path:
            return None
        if not Path(path).is_file():
            raise ConfigurationError(f"FC_CA_BUNDLE names {path}, which is no file", remedy="Name a PEM file")
        return Path(path)
