"""The CPython interpreters installed on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from formulacode_dagster.operating.cancellation.programs import run_program

PROBE_SECONDS = 20
_PROBE = """
import json, os, platform, sys, sysconfig
print(json.dumps({
    "version": sys.version.split()[0],
    "minor": "%d.%d" % sys.version_info[:2],
    "implementation": platform.python_implementation(),
    "threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "headers": os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")),
    "executable": os.path.realpath(sys.executable),
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """One CPython of this machine."""

    minor: str
    version: str
    path: Path
    headers: bool

    @property
    def rank(self) -> tuple[bool, tuple[int, ...]]:
        """Interpreters that can compile extensions come first, then the newest patch release."""
        digits = (part for part in self.version.split(".") if part.isdigit())
        return self.headers, tuple(int(part) for part in digits)


def installed_interpreters(uv: str) -> dict[str, Interpreter]:
    """The best interpreter of each `3.x`, from uv's list, pyenv's folder, and the one that runs this.

    Starting them all takes seconds, so the answer is kept for a search path and a folder of pyenv's.
    """
    return _interpreters_of(uv, _without_shims(), _pyenv_root())


@cache
def _interpreters_of(uv: str, search_path: str, pyenv_root: Path) -> dict[str, Interpreter]:
    """Return those of `installed_interpreters`, by their identity."""
    best: dict[str, Interpreter] = {}
    seen: set[Path] = set()
    for path in [*_listed_by_uv(uv, search_path), *_made_by_pyenv(pyenv_root), Path(sys.executable)]:
        real = path.resolve()
        if real in seen:
            continue
        seen.add(real)
        interpreter = probe(real)
        if interpreter is not None and (
            interpreter.minor not in best or interpreter.rank > best[interpreter.minor].rank
        ):
            best[interpreter.minor] = interpreter
    return best


def probe(path: Path) -> Interpreter | None:
    """Return the interpreter at *path*, if it is a usable CPython with a GIL; None otherwise."""
    try:
        command = [str(path), "-I", "-S", "-c", _PROBE]
        done = run_program(command, environment={"PATH": os.defpath}, timeout=PROBE_SECONDS)
        facts = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    if facts["implementation"] != "CPython" or facts["threaded"]:
        return None
    return Interpreter(facts["minor"], facts["version"], Path(facts["executable"]), facts["headers"])


def _listed_by_uv(uv: str, search_path: str) -> list[Path]:
    command = [uv, "--no-config", "python", "list", "--only-installed", "--output-format", "json"]
    done = run_program(command, environment={**os.environ, "PATH": search_path}, timeout=PROBE_SECONDS * 3)
    if done.returncode != 0:
        return []
    return [Path(entry["path"]) for entry in json.loads(done.stdout) if entry.get("path")]


def _without_shims() -> str:
    """PATH without pyenv's shims: each fails unless its version is chosen, and is one of `_made_by_pyenv`."""
    shims = str(_pyenv_root() / "shims")
    return os.pathsep.join(folder for folder in os.get_exec_path() if folder.rstrip("/") != shims)


def _made_by_pyenv(root: Path) -> list[Path]:
    return sorted((root / "versions").glob("3.*/bin/python"))


def _pyenv_root() -> Path:
    return Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
