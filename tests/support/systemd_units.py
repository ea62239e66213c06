"""Units for systemd, as they would stand where the platform is installed."""

from __future__ import annotations

import getpass
import grp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.deployments import DEPLOY

MOST_EXPOSED = 25
"""Tenths, of the hundred by which systemd counts what a service may do to its machine."""

HARDENING = DEPLOY / "systemd" / "formulacode-.service.d" / "10-hardening.conf"

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def as_installed_here(text: str) -> str:
    """A unit of ours, for this environment and this user."""
    text = text.replace("/opt/formulacode/venv/bin", str(Path(sys.executable).parent))
    text = re.sub("^User=.*", f"User={getpass.getuser()}", text, flags=re.MULTILINE)
    return re.sub("^Group=.*", f"Group={grp.getgrgid(os.getgid()).gr_name}", text, flags=re.MULTILINE)


def install_here(folder: Path, *paths: Path) -> None:
    """Write units *paths* to *folder* as they would stand here, and what confines all services of ours."""
    for path in (*paths, HARDENING):
        copy = folder / (path.name if path in paths else f"{HARDENING.parent.name}/{path.name}")
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(as_installed_here(path.read_text(encoding="utf-8")), encoding="utf-8")


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Output of `systemd-analyze`."""
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
