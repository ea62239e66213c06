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

MOST_EXPOSED = 25
"""Tenths, of the hundred by which systemd counts what a service may do to its machine."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def as_installed_here(text: str) -> str:
    """A unit of ours, for this environment and this user."""
    text = text.replace("/opt/formulacode/venv/bin", str(Path(sys.executable).parent))
    text = re.sub("^User=.*", f"User={getpass.getuser()}", text, flags=re.MULTILINE)
    return re.sub("^Group=.*", f"Group={grp.getgrgid(os.getgid()).gr_name}", text, flags=re.MULTILINE)


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Output of `systemd-analyze`."""
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
