"""Build specs and built images."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow
from .recipe import Command, ExtraFile, FilePatch, Fix, InstallMode, Isolation, Submodule


class EngineName(StrEnum):
    """The engine: Docker, or a folder of this machine."""

    DOCKER = "docker"
    PROCESS = "process"


class ResourceLimits(Frozen):
    """Limits for untrusted code while it is built or measured."""

    cpus: float = 2.0
    memory_mb: int = 4096
    processes: int = 512
    disk_mb: int = 10_240
    build_seconds: int = 1800
    benchmark_seconds: int = 120


WORKLOADS_FOLDER = "_fc_workloads"
"""Folder for workloads in a repository without a suite; setuptools never takes such a name for a package."""


class BuildSpec(Frozen):
    """Everything an engine needs to build one task image, as data. Equal specs give equal tags."""

    task_id: str
    repository: str
    repository_id: int
    base_sha: str
    anchor_sha: str = Field(
        description="commit whose history is in the `repo` tier; an ancestor of the base, or the base"
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
    run_environment: dict[str, str] = Field(
        default_factory=dict, description="variables set while benchmarks run; no part of the image"
    )
    build_lock: str = Field(default="", description="lock of the build requirements, where `isolation` is `apart`")
    test_lock: str = Field(default="", description="lock of the tests' additional requirements")
    isolation: Isolation = Isolation.SHARED
    install_mode: InstallMode = InstallMode.WHEEL
    build_arguments: tuple[str, ...] = Field(
        default=(), description="settings of the build backend, `key=value`, for wheel builds (PEP 517)"
    )
    commands: tuple[Command, ...] = Field(default=(), description="run in this order before the install")
    patches: tuple[FilePatch, ...] = ()
    files: tuple[ExtraFile, ...] = ()
    submodules: tuple[Submodule, ...] = ()
    fixes: tuple[Fix, ...] = Field(default=(), description="repairs that are in this spec, in the order they were made")
    exclude_newer: datetime | None = Field(
        default=None, description="cut-off for files of the index, build isolation included"
    )
    later_projects: dict[str, datetime] = Field(
        default_factory=dict, description="projects that may be newer than `exclude_newer`, and until when"
    )
    wheels_only: bool = Field(
        default=False, description="every pin has a wheel: `env` builds nothing, so that no cut-off tells locks apart"
    )

    @property
    def has_suite(self) -> bool:
        """True if the task was planned with an asv suite; otherwise its workloads are searched when it is measured."""
        return self.benchmark_dir != WORKLOADS_FOLDER


class Tier(Frozen):
    """One tier of a built image."""

    name: str = Field(description="`base`, `repo`, `env` or `task`")
    tag: str
    seconds: float
    size_bytes: int


class Toolchain(Frozen):
    """Versions of the tools in the image that built and measure it."""

    os_digest: str = Field(default="", description="content digest of the OS image; empty with `process`")
    apt: tuple[str, ...] = Field(default=(), description="every installed Debian package as `name=version`")
    python: str = Field(default="", description="`3.12.4`")
    compiler: str = Field(default="", description="first line of `cc --version`")
    flags: dict[str, str] = Field(default_factory=dict, description="CFLAGS, LDFLAGS … in force while building")
    tools: dict[str, str] = Field(default_factory=dict, description="uv, asv_runner, git: versions")


class InstalledDistribution(Frozen):
    """Hashes of a distribution installed in an image, to compare a second build with."""

    name: str
    version: str
    files: int
    sha256: str = Field(description="of the listing of its files and their hashes, which is a blob of that address")


class Verification(Frozen):
    """One fact about a built image, established by the host."""

    name: str = Field(description="`declared_commit`, `imports`, `benchmarks`, `one_benchmark_runs` …")
    ok: bool
    detail: str = ""
    seconds: float = Field(default=0.0, description="seconds of the verification")
    rc: int | None = Field(
        default=None, description="exit code of the command behind it; None when it was killed, or there was none"
    )
    log_tail: str = Field(default="", description="end of the output, if it failed")


class BuiltImage(PullRequestRow):
    """The image of one task: build spec, contents, verifications."""

    engine: EngineName = Field(description="docker or process")
    spec: BuildSpec = Field(description="everything it was built from")
    tag: str = Field(description="names all that varies inside")
    digest: str = Field(description="content digest: image id with Docker, hash of the installed files with `process`")
    location: str = Field(description="image reference, or folder")
    store: str = Field(default="", description="its store: id of the Docker daemon, or machine and folder")
    size_bytes: int = Field(description="of the whole image")
    build_seconds: float = Field(description="seconds of the build")
    tiers: tuple[Tier, ...] = Field(description="tag, seconds and size of each tier, from the bottom")
    toolchain: Toolchain = Field(
        default_factory=Toolchain, description="OS image, Debian packages, interpreter, compiler, flags, tools"
    )
    attempts: int = Field(default=1, description="builds it took, this one included")
    installed: tuple[InstalledDistribution, ...] = Field(default=(), description="reference of `rebuild`")
    benchmarks: tuple[str, ...] = Field(description="names that discovery found")
    expected_benchmarks: int = Field(default=0, description="that it should find, by the suite's files")
    verifications: tuple[Verification, ...] = Field(description="facts about the image, established by the host")


class ImageNeed(Frozen):
    """An image of a task as the database knows it, and whether it is still needed."""

    item: str = Field(description="`owner/repo#123`, `` when the pull request is no longer part of its month")
    month: str
    digest: str
    last: datetime = Field(description="when a stage last ended with it: built, measured, published")
    unfinished: bool = Field(description="its month is not released, and it is still to be measured or published")
    only_copy: bool = Field(description="measured to be faster, and in no registry")
