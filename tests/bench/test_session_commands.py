from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docker import OS_IMAGE

ROOT = Path(__file__).parents[2]


@pytest.mark.docker
def test_both_ways_of_a_command_are_timed() -> None:
    image = OS_IMAGE.replace("{python}", "3.12")
    command = [sys.executable, "bench/session_commands.py", "--image", image, "--turns", "1", "--commands", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(done.stdout.splitlines()[-1])
    assert (figures["commands"], figures["turns"]) == (5, 1)
    assert figures["docker_exec_ms"] > 0
    assert figures["first_process_ms"] >= 0
