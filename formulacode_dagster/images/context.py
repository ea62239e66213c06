"""The files a build starts from, the same for both engines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.recipe import Command

from .spec import instrument_requirements

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def write_instrument(spec: BuildSpec, folder: Path) -> None:
    """Write what the instrument is installed from into *folder*."""
    (folder / "instrument.txt").write_text(instrument_requirements(spec))


def write_task(spec: BuildSpec, folder: Path) -> None:
    """Write lock, base commit, package root, build environment and build commands of *spec* into *folder*.

    Raises ItemFailure (`build`) for a variable that no shell can set.
    """
    for name in spec.build_environment:
        if not _VARIABLE.fullmatch(name):
            raise ItemFailure(
                "build", f"{name!r} cannot be the name of a variable", remedy="Drop it from the environment"
            )
    (folder / "requirements.txt").write_text(spec.lock)
    (folder / "exclude-newer").write_text(spec.exclude_newer.isoformat() if spec.exclude_newer else "")
    (folder / "base-sha").write_text(spec.base_sha + "\n")
    (folder / "package-root").write_text(spec.package_root + "\n")
    exports = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(spec.build_environment.items())]
    (folder / "build.env").write_text("".join(exports))
    (folder / "build-commands").write_text("".join(map(_line, spec.commands)))


def _line(command: Command) -> str:
    """A call of `run_command` in the script `install-package`; quoted, so that no shell reads anything into it."""
    return shlex.join(["run_command", command.on_failure.value, command.folder, *command.argv]) + "\n"
