"""The site as a browser shows it, from its folder: five thousand tasks, strangers' texts, a phone."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.library.site.build import write_site
from formulacode_dagster.library.site.registry import tasks_of
from tests.support.browser import PLAYWRIGHT, require_browser
from tests.support.site import hostile_dataset

TASKS = 5_000
TASK = "acme__fast-11"
SLOWEST_MS = 1_000


@pytest.mark.slow
def test_all_tasks_are_there_at_once_and_no_text_of_a_row_runs(tmp_path: Path) -> None:
    require_browser()
    dataset = hostile_dataset(tmp_path / "data", tasks=12, months=3)
    site = write_site(dataset, tmp_path / "site").index.parent
    rows = json.loads((site / "tasks.json").read_text("utf-8"))
    others = [{**rows[0], "task_id": f"acme__many-{n}", "speedup": 1 + n / TASKS} for n in range(TASKS - len(rows))]
    (site / "tasks.js").write_text(tasks_of([*rows, *others]).script(), "ascii")
    pictures = Path(os.environ.get("FC_SCREENSHOTS") or tmp_path / "pictures").absolute()
    pictures.mkdir(exist_ok=True)
    look = ["node", str(Path(__file__).with_name("look.mjs")), str(PLAYWRIGHT), str(site), TASK, str(pictures)]
    looked = subprocess.run(look, capture_output=True, text=True, timeout=300, check=False)
    assert looked.returncode == 0, looked.stderr
    seen = json.loads(looked.stdout)
    assert (seen["asked"], seen["errors"]) == ([], [])
    assert seen["hacked"] == [[None, 0]] * 3
    assert (seen["all"], seen["shown"]) == (f"{TASKS} of {TASKS} tasks", 100)
    assert (seen["filtered"], seen["fastest"]) == (f"1 of {TASKS} tasks", f"0 of {TASKS} tasks")
    assert seen["sorted"] == TASK
    assert seen["slowest"] < SLOWEST_MS
    assert (seen["solutionHidden"], seen["solutionShown"], seen["plots"]) == (True, True, 6)
    assert (seen["flamesHidden"], seen["flamesShown"]) == (True, True)
    assert seen["address"] == "#month=2026-02&sort=-speedup"
    assert (seen["opened"], seen["searched"]) == (f"4 of {TASKS} tasks", f"1 of {TASKS} tasks")
    assert seen["isDark"] == ["dark", "light"]
    head, *lines = csv.reader(io.StringIO(seen["files"]["workloads.csv"]))
    assert json.loads(seen["files"]["workloads.json"]) == [dict(zip(head, line, strict=True)) for line in lines]
    assert len(lines) == 2
