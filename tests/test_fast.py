"""The guarantee of `make test-fast`: none of its tests finds a daemon or a package index."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.support.running import out_of_reach


@pytest.mark.skipif(shutil.which("docker") is None, reason="no docker client on this machine")
def test_no_daemon_answers(tmp_path: Path) -> None:
    asked = subprocess.run(
        ["docker", "info"], env=os.environ | out_of_reach(tmp_path), capture_output=True, check=False, timeout=60
    )
    assert asked.returncode != 0


def test_no_package_index_answers(tmp_path: Path) -> None:
    asked = subprocess.run(
        [find_uv_bin(), "pip", "compile", "--quiet", "-"],
        input="setuptools",
        text=True,
        env=os.environ | out_of_reach(tmp_path / "cache"),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert asked.returncode != 0
    assert "network was disabled" in asked.stderr
