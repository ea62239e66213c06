"""The build input of a task, and the names of its images. A tag fingerprints everything that varies inside."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Protocol

from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec, Toolchain
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Isolation

from .fixes import with_fixes
from .recipes import recipe_hash
from .wheels import has_wheels

DEFAULT_OS_IMAGE = "python:{python}-slim-bookworm"
LOCAL_NAMESPACE = "formulacode"
_REBUILD = "-again"
_FLAGS = re.compile(r"FLAGS$")

INSTRUMENT_VERSIONS = ("3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
INSTRUMENT = ("asv_runner==0.2.0",)
"""0.2.0 needs nothing else. 0.2.1 drags in importlib-metadata, 0.2.3 calls `setup` once too often, and from 0.3 on a
benchmark with `setup` is timed one call at a time, which measures the timer."""

INSTRUMENT_HASHES = {
    "asv_runner==0.2.0": "sha256:f554adf5b03addb75f535086245821d90e3116b7ceacdd3105041067b6418c3a",
}


class BaseParts(Protocol):
    """Parts of the `base` tier."""

    @property
    def python(self) -> str:
        """`3.12`."""

    @property
    def os_image(self) -> str:
        """With `{python}` for the interpreter's version."""

    @property
    def apt_packages(self) -> tuple[str, ...]:
        """Debian packages."""

    @property
    def instrument(self) -> tuple[str, ...]:
        """The pinned measuring tools."""


@dataclass(frozen=True)
class PlainBase:
    """Implements `BaseParts`."""

    python: str
    os_image: str
    instrument: tuple[str, ...]
    apt_packages: tuple[str, ...] = ()


def plan_build(*, pr: PullRequest, environment: Environment, anchor_sha: str, os_image: str) -> BuildSpec:
    """The build of *pr*'s base commit in *environment*.

    Raises ItemFailure (`interpreter`) when no pinned instrument runs on the environment's interpreter.
    """
    planned = BuildSpec(
        task_id=pr.task_id,
        repository=pr.facts.repository,
        repository_id=pr.facts.repository_id,
        base_sha=pr.change.base_sha,
        anchor_sha=anchor_sha,
        python=environment.python,
        os_image=os_image,
        apt_packages=environment.system_packages,
        instrument=instrument_for(environment.python),
        lock=environment.lock,
        lock_sha256=environment.lock_sha256,
        package_root=environment.package_root,
        package_name=environment.package_name,
        benchmark_dir=environment.benchmark_dir,
        build_environment=environment.build_environment,
        run_environment=environment.run_environment,
        build_lock=environment.build_lock,
        test_lock=environment.test_lock,
        isolation=Isolation.APART if environment.build_lock else Isolation.SHARED,
        commands=environment.commands,
        submodules=environment.submodules,
        fixes=environment.fixes,
        exclude_newer=environment.exclude_newer,
        later_projects=environment.later_projects,
        wheels_only=not environment.build_lock and has_wheels(environment.pylock, environment.python),
    )
    return with_fixes(planned, environment.fixes)


def instrument_for(python: str) -> tuple[str, ...]:
    """Return the pinned measuring tools for interpreter *python*; ItemFailure (`interpreter`) if there are none."""
    if python not in INSTRUMENT_VERSIONS:
        raise ItemFailure(
            FailureKind.INTERPRETER,
            f"no pinned asv_runner for Python {python}",
            remedy=f"Pick one of {', '.join(INSTRUMENT_VERSIONS)}",
        )
    return INSTRUMENT


def instrument_requirements(spec: BaseParts) -> str:
    """The instrument as a requirements file with hashes; raises ItemFailure (`build`) for a tool without one."""
    lines = []
    for requirement in spec.instrument:
        if requirement not in INSTRUMENT_HASHES:
            raise ItemFailure(
                FailureKind.BUILD, f"{requirement} has no recorded hash", remedy="Add it to INSTRUMENT_HASHES"
            )
        lines.append(f"{requirement} --hash={INSTRUMENT_HASHES[requirement]}\n")
    return "".join(lines)


def resolved_os_image(spec: BaseParts) -> str:
    """The OS image for the spec's interpreter."""
    return spec.os_image.replace("{python}", spec.python)


def image_repository(repository: str) -> str:
    """Local name of *repository*'s images; image names know no capitals."""
    owner, _, name = repository.partition("/")
    return f"{LOCAL_NAMESPACE}/{owner}__{name}".lower()


def base_tag(spec: BaseParts) -> str:
    """Interpreter, OS image, system packages, instrument."""
    tools = "-".join(requirement.replace("==", "-") for requirement in spec.instrument)
    readable = _tag_text(f"py{spec.python}-{resolved_os_image(spec)}-{tools}", 100)
    return f"{LOCAL_NAMESPACE}/base:{readable}-{_short_hash(_base_content(spec))}"


def repo_tag(spec: BuildSpec) -> str:
    """The base tier, and the history up to the anchor commit."""
    digest = _short_hash([*_base_content(spec), spec.repository_id, spec.anchor_sha])
    return f"{image_repository(spec.repository)}:repo-py{spec.python}-{spec.anchor_sha[:12]}-{digest}"


def env_tag(spec: BuildSpec) -> str:
    """The repo tier with the installed locks: equal locks have equal tags, whatever else differs."""
    content = [*_base_content(spec), spec.repository_id, spec.anchor_sha, *_env_content(spec)]
    readable = f"env-py{spec.python}-{spec.anchor_sha[:12]}-lock-{spec.lock_sha256[:12]}"
    return f"{image_repository(spec.repository)}:{readable}-{_short_hash(content)}"


def environment_hash(spec: BuildSpec) -> str:
    """SHA-256 over all that is installed before any code of the repository is there, whichever repository it is."""
    return _hash([*_base_content(spec), *_env_content(spec)])


def installer_options(spec: BuildSpec) -> tuple[str, ...]:
    """Options of the installer besides the locks: wheels only, or the newest date for source distributions'
    requirements.
    """
    if spec.wheels_only:
        return ("--only-binary", ":all:")
    if spec.exclude_newer is None:
        return ()
    options = ["--exclude-newer", spec.exclude_newer.isoformat()]
    for name, until in sorted(spec.later_projects.items()):
        options += ["--exclude-newer-package", f"{name}={until.isoformat()}"]
    return tuple(options)


def task_tag(spec: BuildSpec) -> str:
    """Task, interpreter, base commit, lock, package root, build environment and commands."""
    number = spec.task_id.rpartition("-")[2]
    readable = f"pr{number}-py{spec.python}-base-{spec.base_sha[:12]}-lock-{spec.lock_sha256[:12]}"
    if spec.package_root != ".":
        readable += "-" + _tag_text(spec.package_root, 30)
    return f"{image_repository(spec.repository)}:{readable}-{spec_hash(spec)[:12]}"


def needs_crates(spec: BuildSpec) -> bool:
    """True if cargo is among the system packages, so that the crates of a Cargo.lock are fetched."""
    return any(re.match(r"cargo\b", package) for package in spec.apt_packages)


def cache_name(spec: BuildSpec) -> str:
    """Name of the caches of downloads that the `env` tier uses; common to all builds that install only wheels.

    Code of a source distribution can write to these caches: those of one repository must not reach another's builds.
    """
    return "wheels" if spec.wheels_only else str(spec.repository_id)


def rebuild_tag(tag: str) -> str:
    """Return the tag of a second build, which stays next to the first for comparison."""
    return f"{tag}{_REBUILD}"


def is_rebuild(name: str) -> bool:
    """Return True if *name* is a result of `rebuild_tag`."""
    return name.endswith(_REBUILD)


def spec_hash(spec: BuildSpec) -> str:
    """SHA-256 over the whole spec and the recipes it is built by."""
    return _hash([spec.model_dump(mode="json"), recipe_hash()])


def with_flags(toolchain: Toolchain, spec: BuildSpec) -> Toolchain:
    """*toolchain* with the compiler's and linker's flags of the build environment in place of the interpreter's."""
    own = {name: value for name, value in spec.build_environment.items() if _FLAGS.search(name)}
    return toolchain.model_copy(update={"flags": {**toolchain.flags, **own}})


def _base_content(spec: BaseParts) -> list[object]:
    return [spec.python, resolved_os_image(spec), spec.apt_packages, spec.instrument, recipe_hash()]


def _env_content(spec: BuildSpec) -> list[object]:
    return [spec.lock_sha256, spec.build_lock, spec.test_lock, installer_options(spec)]


def _tag_text(text: str, length: int) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")[:length]


def _short_hash(content: object) -> str:
    return _hash(content)[:12]


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
