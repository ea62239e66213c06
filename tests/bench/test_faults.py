"""Months with faults end as one without; a defect that loses rows is found. In processes of their own, which fork."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.faults_injected import WRITES, WRITTEN, Injection, Kind, plan_of, systematic
from bench.faults_seeds import invented

ROOT = Path(__file__).parents[2]
LOSES_ROWS = """
import os, signal
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner import runner
from formulacode_dagster.operating.store import ledger

keep = runner.keep

def in_two_transactions(run, results, save):
    if run.stage is not Stage.IMAGES:
        return keep(run, results, save)
    with run.database.transaction() as connection:
        ledger.record(connection, [result.entry for result in results])
    if os.environ.get("FC_KILLED"):
        os.kill(os.getpid(), signal.SIGKILL)
    return keep(run, results, save)

runner.keep = in_two_transactions
from bench import faults_tries
run = faults_tries.run

def killed_at_first(database, injector, place, plan, *rest, **more):
    os.environ["FC_KILLED"] = "1" if plan else ""
    return run(database, injector, place, plan, *rest, **more)

faults_tries.run = killed_at_first
"""

STAYS_SHORT = """
from bench import faults
from bench.faults_injected import PASSING_GITHUB, Injection, Kind
from sandbox.github.faults import Fault

# the first three requests are searches
ways = (way for way in range(100) if PASSING_GITHUB[way % len(PASSING_GITHUB)] is Fault.HALF_PAGE)
way = next(way for way in ways if way % 5 == 2)
faults.plan_of = lambda seed: [[Injection(Kind.GITHUB, 1, way)]]
"""


def run_seeds(before: str = "", *arguments: str) -> tuple[int, dict[str, Any]]:
    script = f"{before}\nimport sys\nfrom bench.faults import main\nsys.exit(main())"
    command = [sys.executable, "-c", script, "--every", "0", "--jobs", "1", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout.splitlines()[-1])


def test_a_seed_draws_the_same_faults_every_time_and_all_kinds_are_drawn() -> None:
    assert plan_of(7) == plan_of(7)
    kinds = {each.kind for seed in range(200) for plan in plan_of(seed) for each in plan}
    assert kinds == set(Kind)


def test_a_process_is_killed_at_every_write_in_turn() -> None:
    plans = [plan for (plan,) in systematic()]
    assert len(plans) == len(set(plans)) == WRITTEN.rows + WRITTEN.commits + WRITTEN.files
    assert {plan.kind for plan in plans} == set(WRITES)
    assert plan_of(-len(plans)) == [[Injection(Kind.KILL_FILE, WRITTEN.files)]]


@pytest.mark.slow
def test_months_with_faults_end_as_one_without() -> None:
    code, figures = run_seeds("", "--seeds", "3")
    assert (code, figures["differ"]) == (0, [])
    assert figures["months"] == 3
    assert sum(figures["injected"].values()) >= 3


@pytest.mark.slow
def test_rows_that_a_kill_loses_are_found() -> None:
    """A ledger that is written before the rows: the next run believes it."""
    code, figures = run_seeds(LOSES_ROWS, "--seeds", "1")
    assert (code, figures["differ"]) == (1, [0])


@pytest.mark.slow
def test_repositories_that_a_short_search_hides_are_no_difference() -> None:
    code, figures = run_seeds(STAYS_SHORT, "--seeds", "1")
    assert (code, figures["short"], figures["differ"]) == (0, 1, [])


def test_a_month_with_fewer_rows_must_not_have_others() -> None:
    def state(tasks: list[str], rows: list[int]) -> dict[str, list[object]]:
        release: list[object] = [{"tag": "formulacode@2026-03", "tasks": [{"task_id": task} for task in tasks]}]
        return {"images": [{"number": row} for row in rows], "release": release}

    wanted = state(["a-1", "b-2"], [1, 2])
    assert invented(wanted, state(["a-1"], [2]), wanted) == []
    (row,) = invented(wanted, state(["a-1"], [2, 3]), wanted)
    assert row == "images: invented {'number': 3}"
    (task,) = invented(wanted, state(["a-1", "c-3"], [1]), wanted)
    assert task.startswith("release: invented {")
    assert "c-3" in task
