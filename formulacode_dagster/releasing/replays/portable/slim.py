"""Slim archives: environment, tools and checkout of an image, over this machine's own system and interpreter."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

from .contents import ArchiveRefusedError
from .entering import NAMESPACES, Bind

try:
    # the name that it has in the archive
    import plain_mounts as mounts  # type: ignore[import-not-found]
except ImportError:
    from formulacode_dagster.building.engines import view_mounts as mounts

SLIM_WAYS = (NAMESPACES, "bubblewrap")
PROGRAMS = ("bash", "find", "git", "sed", "tar")
"""Programs that building a package takes."""
COMPILER = "cc"
PLACES = (
    "~/.pyenv/versions/*/bin/python{minor}",
    "~/.local/share/uv/python/*/bin/python{minor}",
    "/opt/*/bin/python{minor}",
    "/usr/local/bin/python{minor}",
)
"""Interpreters that need not be on PATH."""
PROBE_SECONDS = 20
PROBE = """
import os, platform, sys, sysconfig
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
kind = platform.python_implementation() + (" without a GIL" if free else "")
print(kind, platform.python_version(), os.path.realpath(sys.executable), sys.base_prefix, sep="\\n")
"""
ENVIRONMENTS = ("opt/venv", "opt/build")


class FoundInterpreter(NamedTuple):
    """A CPython of this machine."""

    version: str
    path: str
    prefix: str


def require_machine(tasks: list[dict[str, Any]], python: str) -> None:
    """Raise ArchiveRefusedError, with all reasons, unless this machine has what the slim ones of *tasks* need."""
    slim = [task for task in tasks if task["slim"]]
    missing = [f"{name} is not on PATH" for name in PROGRAMS if slim and not shutil.which(name)]
    for version in sorted({task["slim"]["python"] for task in slim}):
        try:
            find_interpreter(version, python)
        except ArchiveRefusedError as error:
            missing.append(str(error))
    if compiled := [task["item"] for task in slim if task["slim"]["is_compiled"] and not shutil.which(COMPILER)]:
        missing.append(f"no compiler ({COMPILER}) is on PATH, and {', '.join(compiled)} cannot be built without one")
    if missing:
        raise ArchiveRefusedError(f"{'; '.join(missing)}. An archive that is not slim needs nothing of the machine")


def find_interpreter(version: str, named: str = "") -> FoundInterpreter:
    """Return the interpreter *named*, or one of this *version*; raises ArchiveRefusedError if it is another."""
    minor = ".".join(version.split(".")[:2])
    paths = [sys.executable, shutil.which(f"python{minor}") or "", shutil.which("python3") or ""]
    for place in PLACES:
        paths += sorted(glob.glob(os.path.expanduser(place.format(minor=minor))))
    found = [each for path in ([named] if named else paths) if (each := _probed(path))]
    for interpreter in found:
        if interpreter.version == version:
            return interpreter
    versions = ", ".join(sorted({each.version for each in found})) or "none"
    raise ArchiveRefusedError(f"CPython {version} is not here, only {versions}; name it with --python")


def _probed(path: str) -> FoundInterpreter | None:
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", PROBE], capture_output=True, text=True, timeout=PROBE_SECONDS, check=True
        )
        kind, version, real, prefix = done.stdout.splitlines()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return FoundInterpreter(version if kind == "CPython" else f"{version} ({kind})", real, prefix)


def lay_machine(root: str, interpreter: FoundInterpreter) -> tuple[Bind, ...]:
    """Make room in *root* for this machine's system and *interpreter*, and let its environments use that one.

    Returns what has to be laid over it. Files of users, and settings with secrets, are not among it.
    """
    binds = []
    for path in (*mounts.SYSTEM, *(f"/etc/{name}" for name in mounts.SYSTEM_SETTINGS)):
        if path == "/sys/devices/system" or not os.path.exists(path):
            continue
        if os.path.islink(path) and path in mounts.SYSTEM:
            os.symlink(os.readlink(path), root + path)
            continue
        binds.append(_bind(os.path.realpath(path), path, root))
    if not any(f"{interpreter.prefix}/".startswith(f"{path}/") for path in mounts.SYSTEM):
        binds.append(_bind(interpreter.prefix, interpreter.prefix, root))
    _bind("/dev/null", "/etc/passwd", root)
    for environment in ENVIRONMENTS:
        folder = f"{root}/{environment}"
        if os.path.isfile(f"{folder}/pyvenv.cfg"):
            os.unlink(f"{folder}/bin/python")
            os.symlink(interpreter.path, f"{folder}/bin/python")
            with open(f"{folder}/pyvenv.cfg") as file:
                lines = [line for line in file if line.split("=")[0].strip() != "home"]
            with open(f"{folder}/pyvenv.cfg", "w") as file:
                file.writelines([f"home = {os.path.dirname(interpreter.path)}\n", *lines])
    return tuple(binds)


def _bind(source: str, inside: str, root: str) -> Bind:
    """Lay *source* over a file or folder of *root* that is made for it."""
    if os.path.isdir(source):
        os.makedirs(root + inside, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(root + inside), exist_ok=True)
        with open(root + inside, "a"):
            pass
    return Bind(source, inside, writable=False)
