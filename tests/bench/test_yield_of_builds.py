from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("yield_report")


@pytest.fixture
def timed(report):
    return report.Trial(
        "acme/fast#1",
        stage="timed",
        plan="tag base",
        attempts=2,
        way=("task", "header: done"),
        timed=3,
        aimed=1,
        source="later_suite",
        seconds=120.0,
        sources={"base_suite": report.SourceTrial(30.0, 3, 0), "later_suite": report.SourceTrial(45.0, 3, 1)},
    )


@pytest.fixture
def lost(report):
    return report.Trial("acme/fast#2", stage="image", reason="build", detail="no | header\nfoo.h", log="long")


def test_every_row_of_the_table_has_a_cell_for_every_column(report, timed, lost):
    header, rule, *rows = report.table([timed, lost])
    assert {line.count("|") for line in (header, rule, *rows)} == {header.count("|")}
    assert "task → header: done" in rows[0]
    assert "build no / header foo.h" in rows[1]
    assert "base_suite 0 (0.5 min), later_suite 1 (0.8 min)" in rows[0]


def test_a_results_file_keeps_the_last_trial_of_each_item(report, timed, lost, tmp_path):
    results = report.Results(tmp_path / "new" / "results.jsonl")
    results.add(lost)
    results.add(timed)
    results.add(replace(lost, reason="timeout"))
    read = report.Results(tmp_path / "new" / "results.jsonl")
    assert [trial.reason for trial in read.of(["acme/fast#2", "acme/fast#1", "acme/fast#3"])] == ["timeout", ""]
    assert read.timed(timed.item, "tag base") == timed
    assert read.timed(timed.item, "other tag base") is None
    assert read.timed(lost.item, lost.plan) is None
    replayed = replace(timed, plan="tag base measured, 3 replays")
    read.add(replayed)
    assert read.timed(timed.item, "tag base measured") == replayed, "what has replays has all that is asked without"
    assert read.timed(timed.item, "tag base") is None
    assert "long" not in (tmp_path / "new" / "results.jsonl").read_text()


def test_a_line_that_was_cut_off_with_its_run_costs_that_trial_alone(report, timed, lost, tmp_path):
    path = tmp_path / "results.jsonl"
    report.Results(path).add(timed)
    with path.open("a") as file:
        file.write('{"item": "acme/fast#2", "sta')
    report.Results(path).add(lost)
    assert [trial.item for trial in report.Results(path).of([timed.item, lost.item])] == [timed.item, lost.item]


def test_what_is_counted_apart_is_named_and_lowers_no_share(report, timed, lost):
    rust = report.Trial("acme/rust#9", stage="image", reason="build")
    figures = report.figures([timed, lost, rust], {"acme/rust": "no crates here"})
    assert (figures["pull_requests"], figures["repositories"], figures["share_timed"]) == (2, 1, 0.5)
    assert figures["timed_with_a_benchmark_aimed_at_the_change"] == 1
    assert figures["aimed_by_source"] == {"later_suite": 1}
    assert figures["aimed_by_source_alone"] == {"later_suite": 1}
    assert figures["tried_by_source"] == {"base_suite": 1, "later_suite": 1}
    assert figures["minutes_by_source"] == {"base_suite": 0.5, "later_suite": 0.8}
    assert figures["minutes_a_pull_request"] == 1.0, "what was lost took none, and counts"
    assert figures["losses"] == {"image: build": 1}
    assert figures["counted_apart"] == {"acme/rust#9": "image build"}


@pytest.mark.slow
def test_without_a_repository_of_the_list_there_is_a_table_of_nothing(tmp_path):
    command = [sys.executable, "bench/yield_of_builds.py", "--repositories", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "networkx/networkx is not in" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["pull_requests"] == 0


def test_figures_count_builds_and_losses_without_a_workload(report, timed, lost):
    faster = replace(timed, verdict="faster", unit="process", tests="hold", measuring_seconds=120.0)
    broken = replace(faster, item="acme/fast#3", tests="broken", measuring_seconds=240.0)
    compiled = replace(timed, item="acme/fast#5", verdict="unchanged", unit="build", measuring_seconds=600.0)
    without = report.Trial("acme/fast#4", stage="timing", reason="no_relevant_workload")
    figures = report.figures([faster, broken, compiled, without, lost], {})
    assert (figures["built"], figures["aimed_of_built"]) == (4, 0.75)
    assert figures["verdicts"] == {"faster": 2, "unchanged": 1}
    assert figures["tests_of_what_is_faster"] == {"hold": 1, "broken": 1}
    assert figures["median_measuring_minutes"] == {"build": 10.0, "process": 3.0}


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ((5, 0), (2, 1), (2, 1)),
        ((2, 1), (5, -1), (2, 1)),
        ((5, 0), (2, -1), (2, -1)),
        ((5, 0), None, (5, 0)),
    ],
)
def test_the_set_of_files_that_reaches_the_change_counts_with_all_time(report, first, second, best):
    results = [report.Trial("a", timed=each[0], aimed=each[1]) if each else None for each in (first, second)]
    total = report.SourceTrial().plus(1.0, results[0]).plus(2.0, results[1])
    assert (total.seconds, (total.timed, total.aimed)) == (3.0, best)


def test_replay_figures_count_conditions_and_fully_confirmed_tasks(report, timed):
    faster = replace(timed, verdict="faster", tests="hold", replays=("confirmed",) * 4)
    lost_once = replace(faster, item="acme/fast#3", replays=("confirmed", "not_confirmed"))
    figures = report.figures([faster, lost_once, replace(timed, item="acme/fast#4", verdict="unchanged")], {})
    assert figures["replays"] == {
        "the same": {"confirmed": 3},
        "one core": {"confirmed": 1, "not_confirmed": 1},
        "beside a busy process": {"confirmed": 1},
    }
    assert figures["tasks_confirmed_by_all_replays"] == {True: 1, False: 1}


@pytest.mark.slow
def test_replays_of_what_is_not_measured_are_refused(tmp_path):
    command = [sys.executable, ROOT / "bench" / "yield_of_builds.py", "--repositories", tmp_path, "--replays", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--replays needs --measure" in done.stderr
