"""Prints what a build takes from the machine it happens on, as JSON: Debian packages, compiler, interpreter, tools.

A script for Python 3.7 and later, run before any code of a repository is there: `python describe_toolchain.py`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

SEARCHED = ("CC", "CXX", "OPT", "CFLAGS", "LDFLAGS", "LDSHARED")


def output(*command: str) -> str:
    """What *command* prints; nothing where there is no such program."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode(errors="replace").strip()


def version(*command: str) -> str:
    """The first number with a dot in what *command* prints."""
    found = re.search(r"\d+(\.\d+)+", output(*command))
    return found.group() if found else ""


def instrument(folder: Path) -> dict[str, str]:
    """Versions of the measuring tools in *folder*."""
    found = (re.match(r"(.+)-([^-]+)\.dist-info$", path.name) for path in sorted(folder.glob("*.dist-info")))
    return {match.group(1): match.group(2) for match in found if match}


def main() -> None:
    """Print the fields of `models.image.Toolchain` that can be seen from here."""
    variables = {name: sysconfig.get_config_var(name) for name in SEARCHED}
    tools = {
        "uv": version(os.environ["FC_UV"], "--version"),
        "git": version("git", "--version"),
        "ccache": version("ccache", "--version"),
        "cargo": version("cargo", "--version"),
        **instrument(Path(os.environ["FC_INSTRUMENT"])),
    }
    packages = output("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev}${binary:Package}=${Version}\n")
    described = {
        "apt": sorted(line[3:].strip() for line in packages.splitlines() if line.startswith("ii")),
        "python": platform.python_version(),
        "compiler": output("cc", "--version").partition("\n")[0],
        "flags": {name: str(value) for name, value in variables.items() if value},
        "tools": {name: found for name, found in tools.items() if found},
    }
    json.dump(described, sys.stdout)


if __name__ == "__main__":
    main()
