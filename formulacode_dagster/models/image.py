"""What an image is built from, and what was built."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen


class EngineName(StrEnum):
    """Who builds: Docker, or a folder of this machine."""

    DOCKER = "docker"
    PROCESS = "process"


class ResourceLimits(Frozen):
    """What untrusted code may use while it is built or measured."""

    cpus: float = 2.0
    memory_mb: int = 4096
    processes: int = 512
    build_seconds: int = 1800
    benchmark_seconds: int = 120


class BuildSpec(Frozen):
    """Everything an engine needs to build one task image, as data. Equal specs give equal tags."""

    task_id: str
    repository: str
    repository_id: int
    base_sha: str
    anchor_sha: str = Field(
        description="commit whose history the `repo` tier holds; an ancestor of the base, or the base"
    )
    python: str
    os_image: str = Field(description="OS image of the `base` tier; `{python}` is replaced by the interpreter")
    apt_packages: tuple[str, ...] = ()
    instrument: tuple[str, ...] = Field(description="pinned measuring tools, e.g. `asv_runner==0.2.1`")
    lock: str
    lock_sha256: str
    package_root: str = "."
    package_name: str = ""
    benchmark_dir: str
    build_environment: dict[str, str] = Field(default_factory=dict)
    build_commands: tuple[str, ...] = ()
    exclude_newer: datetime | None = Field(
        default=None, description="instant after which nothing may be taken from the index, build isolation included"
    )


class Tier(Frozen):
    """One tier of a built image."""

    name: str = Field(description="`base`, `repo` or `task`")
    tag: str
    seconds: float
    size_bytes: int


class Verification(Frozen):
    """One fact about a built image, established by the host."""

    name: str = Field(description="`declared_commit`, `imports`, `benchmarks`, `one_benchmark_runs` …")
    ok: bool
    detail: str = ""


class BuiltImage(Frozen):
    """One row of `images`."""

    month: str
    repository_id: int
    number: int
    engine: EngineName
    spec: BuildSpec
    tag: str = Field(description="names all that varies inside")
    digest: str = Field(description="content digest: image id with Docker, hash of the installed files with `process`")
    location: str = Field(description="image reference, or folder")
    size_bytes: int
    build_seconds: float
    tiers: tuple[Tier, ...]
    benchmarks: tuple[str, ...] = Field(description="names that discovery found")
    verifications: tuple[Verification, ...]
