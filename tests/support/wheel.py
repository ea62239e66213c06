"""The platform as its users install it: a wheel, in an environment that has nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .documents import ROOT


def install_wheel(folder: Path) -> None:
    """Build the wheel and install it at the locked versions; the environment is `environment` in *folder*."""
    import uv

    program, environment, built, locked = uv.find_uv_bin(), folder / "environment", folder / "built", folder / "locked"
    folder.mkdir()
    _uv(program, "build", "--wheel", "--out-dir", str(built), str(ROOT))
    options = ("--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--output-file", str(locked))
    _uv(program, "export", "--project", str(ROOT), *options)
    _uv(program, "venv", "--python", sys.executable, str(environment))
    (wheel,) = built.glob("*.whl")
    _uv(program, "pip", "install", "--python", str(environment), "--constraints", str(locked), str(wheel))


def _uv(program: str, *arguments: str) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    ran = subprocess.run([program, "--quiet", *arguments], env=clean, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"uv {arguments[0]}: {ran.stderr}"
