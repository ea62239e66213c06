from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.processes import can_confine

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not can_confine(), reason="this kernel allows no namespaces")
def test_the_cost_of_confinement_comes_in_one_line_of_json() -> None:
    command = [sys.executable, "bench/confinement.py", "--turns", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    *shown, last = done.stdout.splitlines()
    figures = json.loads(last)
    assert [line.split()[0] for line in shown] == list(figures)
    assert all(value > 0 for value in figures.values())
