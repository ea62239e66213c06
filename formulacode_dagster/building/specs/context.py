"""The files a build starts from, the same for both engines."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.reasons import FailureKind

from . import recipes, sources
from .spec import BaseParts, installer_options, instrument_requirements

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATCHED = re.compile(r"^(?:---|\+\+\+) [ab]/([^\t\n]+)", re.MULTILINE)


@dataclass(frozen=True)
class Origins:
    """The bare repositories that a build takes sources from."""

    mirror: Path
    submodules: Mapping[str, Path] = field(default_factory=dict)
    """Mirrors by `owner/name`."""


def write_base_tier(spec: BaseParts, folder: Path) -> None:
    """Write the files that the Dockerfile of the `base` tier copies."""
    shutil.copytree(recipes.recipes_folder() / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("_*"))
    shutil.copy(recipes.recipes_folder() / "uv.txt", folder)
    write_instrument(spec, folder)
    (folder / "apt.txt").write_text("".join(f"{package}\n" for package in spec.apt_packages))
    (folder / "python").write_text(spec.python + "\n")


def write_repo_tier(spec: BuildSpec, origins: Origins, folder: Path) -> None:
    """Write the history up to the anchor; raises ItemFailure (`anchor`, `mirror`) if there is none."""
    _require_anchor(spec, origins)
    sources.write_bundle(origins.mirror, spec.anchor_sha, folder / "history.bundle")


def write_task_tier(spec: BuildSpec, origins: Origins, folder: Path) -> None:
    """Write the rest of the history, and the files of the task; raises as its parts, and `anchor`."""
    _require_anchor(spec, origins)
    (folder / "task").mkdir()
    write_task(spec, folder / "task")
    write_submodules(spec, origins.submodules, folder / "submodules")
    sources.write_bundle(origins.mirror, spec.base_sha, folder / "history.bundle", since=spec.anchor_sha)


def write_instrument(spec: BaseParts, folder: Path) -> None:
    """Write the installation files of the harness into *folder*."""
    (folder / "instrument.txt").write_text(instrument_requirements(spec))


def write_locks(spec: BuildSpec, folder: Path, *, fresh: bool = False) -> None:
    """Write the locks of *spec*, and how they are installed, into *folder*.

    With *fresh*, source distributions are built again, though the installer's cache has the wheels it made of them.
    """
    options = [*installer_options(spec), *(["--no-cache"] if fresh and not spec.wheels_only else [])]
    (folder / "requirements.txt").write_text(spec.lock)
    (folder / "build-requirements.txt").write_text(spec.build_lock)
    (folder / "test-requirements.txt").write_text(spec.test_lock)
    (folder / "installer-options").write_text("".join(f"{option}\n" for option in options))


def write_task(spec: BuildSpec, folder: Path) -> None:
    """Write base commit, package root, install mode and all steps of the build of *spec* into *folder*.

    Raises ItemFailure (`build`) for a variable that no shell can set, or a path outside the repository.
    """
    for name in spec.build_environment:
        if not _VARIABLE.fullmatch(name):
            raise ItemFailure(
                FailureKind.BUILD, f"{name!r} cannot be the name of a variable", remedy="Drop it from the environment"
            )
    (folder / "base-sha").write_text(spec.base_sha + "\n")
    (folder / "package-root").write_text(spec.package_root + "\n")
    (folder / "install-mode").write_text(spec.install_mode.value + "\n")
    (folder / "build-arguments").write_text("".join(f"{argument}\n" for argument in spec.build_arguments))
    exports = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(spec.build_environment.items())]
    (folder / "build.env").write_text("".join(exports))
    (folder / "build-steps").write_text("".join(f"{shlex.join(step)}\n" for step in _steps(spec)))
    parts = folder / "parts"
    parts.mkdir()
    for number, patch in enumerate(spec.patches):
        (parts / f"patch-{number}").write_text(patch.diff)
    for number, file in enumerate(spec.files):
        (parts / f"file-{number}").write_text(file.content)


def write_submodules(spec: BuildSpec, mirrors: Mapping[str, Path], folder: Path) -> None:
    """Write the objects of the submodules of *spec*, from their *mirrors* by repository, into the new *folder*.

    Raises ItemFailure (`submodule`) for one without a mirror, `mirror` when the mirror lacks its commit.
    """
    folder.mkdir()
    for module in spec.submodules:
        if module.repository not in mirrors:
            raise ItemFailure(
                FailureKind.SUBMODULE,
                f"{module.path} is {module.repository}, of which no mirror was given",
                remedy="Hand the mirrors of all submodules to the build",
            )
        sources.write_commit(mirrors[module.repository], module.sha, folder / f"{module.sha}.pack")


def _require_anchor(spec: BuildSpec, origins: Origins) -> None:
    if not sources.is_ancestor(origins.mirror, spec.anchor_sha, spec.base_sha):
        raise ItemFailure(
            FailureKind.ANCHOR,
            f"{spec.anchor_sha} is not in the history of {spec.base_sha}",
            remedy="Anchor the task at a commit that its base descends from",
        )


def _steps(spec: BuildSpec) -> Iterator[list[str]]:
    """Calls of the functions in the script `install-package`; they are quoted against the shell."""
    for module in sorted(spec.submodules, key=lambda module: module.path):
        yield ["lay_submodule", _inside(module.path), module.sha, f"{module.sha}.pack"]
    for number, _ in enumerate(spec.patches):
        yield ["apply_patch", f"patch-{number}"]
    for number, file in enumerate(spec.files):
        yield ["lay_file", _inside(file.path), f"file-{number}"]
    patched = (path for patch in spec.patches for path in _PATCHED.findall(patch.diff))
    if laid := sorted({*map(_inside, patched), *(file.path for file in spec.files)}):
        yield ["hide_from_git", *laid]
    for command in spec.commands:
        yield ["run_command", command.on_failure.value, _inside(command.folder), *command.argv]


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts:
        raise ItemFailure(FailureKind.BUILD, f"{path} is not a path in the repository", remedy="Correct the spec")
    return path
