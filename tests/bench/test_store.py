from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sampling import run_whole

ROOT = Path(__file__).parents[2]
SMALL = ["--pull-requests", "300", "--repositories", "5", "--largest", "250", "--repeat", "1"]


@run_whole("store")
@pytest.mark.slow
def test_the_figures_of_the_store_come_in_one_line_of_json() -> None:
    command = [sys.executable, "bench/store.py", *SMALL]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    *shown, last = done.stdout.splitlines()
    figures = json.loads(last)
    assert [line.split()[0] for line in shown] == list(figures)
    assert figures["rows"] == 300
    assert 0 < figures["peak_mb"] < figures["peak_mb_allowed"]
    assert all(value > 0 for value in figures.values())
