"""The pinned environment of one task."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import Frozen, PullRequestRow
from .recipe import Command, Fix, Submodule


class DroppedRequirement(Frozen):
    """A declared requirement that is not in the lock, and why."""

    requirement: str
    source: str = Field(
        description="where it was declared: `pyproject.toml:project.dependencies`, `asv.conf.json:matrix` …"
    )
    reason: str


class Environment(PullRequestRow):
    """The environment of one task: interpreter, suite, pinned and hashed lock."""

    python: str = Field(description="`3.12`")
    python_reason: str = Field(description="which declarations allowed it, and why this one of them")
    python_candidates: tuple[str, ...] = Field(description="every interpreter the declarations allow, best first")
    package_root: str = Field(description="folder of the package below the repository, `.` for the top")
    package_name: str = Field(default="", description="import name to try after the build, `` when it is not known")
    config_path: str = Field(description="path of asv.conf.json; `` for a repository without a suite")
    benchmark_dir: str = Field(
        description="folder of the benchmarks below the repository, or of the files copied there"
    )
    requirements: tuple[str, ...] = Field(description="the repository's declarations, as passed to the resolver")
    build_requirements: tuple[str, ...] = Field(default=(), description="PEP 518 `requires`, resolved with the rest")
    build_environment: dict[str, str] = Field(default_factory=dict, description="variables set while building")
    run_environment: dict[str, str] = Field(
        default_factory=dict, description="variables that asv's matrix sets while benchmarks run"
    )
    build_lock: str = Field(
        default="", description="lock of the build requirements if they contradict the runtime's, else ``"
    )
    test_requirements: tuple[str, ...] = Field(default=(), description="declared test requirements")
    test_lock: str = Field(
        default="",
        description="lock of the tests' additional requirements, consistent with `lock`; `` if there is none",
    )
    commands: tuple[Command, ...] = Field(default=(), description="from asv's `build_command`; usually none")
    submodules: tuple[Submodule, ...] = Field(default=(), description="submodules that the build reads from")
    fixes: tuple[Fix, ...] = Field(default=(), description="repairs that this plan takes into account")
    system_packages: tuple[str, ...] = Field(
        default=(), description="Debian packages that asv's matrix, in conda's terms, and the build files ask for"
    )
    license: str = Field(default="", description="SPDX expression of the package's license; `` if unknown")
    suite_sha: str = Field(
        default="",
        description="commit the suite was read at: the base, else the merge, else the nearest later commit with one",
    )
    notes: tuple[str, ...] = Field(default=(), description="departures from the declarations, with reasons")
    dropped: tuple[DroppedRequirement, ...] = Field(
        default=(), description="declared requirements that are not in the lock, and why"
    )
    lock: str = Field(description="requirements file with hashes, as `uv pip compile` wrote it")
    lock_sha256: str = Field(description="SHA-256 of `lock`")
    pylock: str = Field(default="", description="the same pins as PEP 751 `pylock.toml`, with every file's hash")
    resolver: str = Field(description="`uv 0.13.8`")
    exclude_newer: datetime = Field(
        description="cut-off: the lock has no later files, except those of `later_projects`"
    )
    later_projects: dict[str, datetime] = Field(
        default_factory=dict, description="projects that may be newer than `exclude_newer`, and until when; see `notes`"
    )
